//! Works from hub to cluster and away again, with an agent in this process.

mod applying;
mod letting_go;
