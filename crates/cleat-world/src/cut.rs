//! A connection that can be cut: bytes pass through real sockets, until they do not.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A way to a server. It ends with the runtime.
pub struct Link {
    /// Where clients connect to.
    pub address: SocketAddr,
    whole: watch::Sender<bool>,
}

impl Link {
    pub async fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen on loopback")?;
        let address = listener.local_addr()?;
        let whole = watch::Sender::new(true);
        let state = whole.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // While it is cut, whoever comes is turned away.
                if *state.borrow() {
                    tokio::spawn(pass(client, target, state.clone()));
                }
            }
        });
        Ok(Self { address, whole })
    }

    /// Ends every connection, and lets none begin.
    pub fn cut(&self) {
        self.whole.send_replace(false);
    }

    pub fn restore(&self) {
        self.whole.send_replace(true);
    }
}

async fn pass(mut client: TcpStream, target: SocketAddr, mut whole: watch::Receiver<bool>) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    // An end of either side, or of the link, is the end of both.
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = whole.wait_for(|whole| !*whole) => {}
    }
}
