//! `--metrics`: where Prometheus finds what a process tells in numbers. Off unless asked for; plain, so
//! that the address should be one that only those reach who may read it.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::routing::get;
use cleat_apiserver::tls::{self, ServeOptions};
use cleat_runtime::tasks::Tasks;
use http::header;
use tokio::net::TcpListener;

#[derive(Clone, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Serve numbers about policies for Prometheus at this address, such as 127.0.0.1:8383
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

impl Args {
    /// Serves what `text` says until the tasks end, if anybody asked for it.
    pub(crate) async fn serve(
        &self,
        text: impl Fn() -> String + Clone + Send + Sync + 'static,
        tasks: &Tasks,
    ) -> Result<()> {
        let Some(address) = self.metrics else { return Ok(()) };
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
        eprintln!("numbers about policies on http://{}/metrics", listener.local_addr()?);
        start(listener, text, tasks);
        Ok(())
    }
}

fn start(
    listener: TcpListener,
    text: impl Fn() -> String + Clone + Send + Sync + 'static,
    tasks: &Tasks,
) {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let tell = move || async move { ([(header::CONTENT_TYPE, kind)], text()) };
    let router: Router = Router::new().route("/metrics", get(tell));
    let mut stop = tasks.stop();
    tasks.spawn("metrics", async move {
        let stopped = stop.stopped();
        tls::serve(listener, None, router, ServeOptions::default(), stopped).await;
    });
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn numbers_are_served_as_they_are_now() -> Result<()> {
        let tasks = Tasks::new();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        start(listener, || "answers 42\n".to_owned(), &tasks);
        let mut stream = TcpStream::connect(address).await?;
        let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("text/plain; version=0.0.4") && answer.ends_with("answers 42\n"));
        tasks.shutdown().await;
        Ok(())
    }
}
