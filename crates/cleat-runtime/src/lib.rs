//! What every process needs: queue, the one executor, mirrors of clusters, tasks.
