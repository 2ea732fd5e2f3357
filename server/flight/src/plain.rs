//! Plain TCP connections, and the most common way to get them wrong: JDBC encrypts unless its URL says `useEncryption=false`, and its TLS hello
//! on a plain port is an unreadable HTTP/2 preface. The client sees a closed connection; the log says why.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// A connection whose first byte is looked at.
#[derive(Debug)]
pub struct Plain {
    stream: TcpStream,
    peer: SocketAddr,
    looked_at: bool,
}

/// The listener's connections, without end. A failed accept (too many open files) is logged and tried again.
pub fn connections(listener: TcpListener) -> impl futures::Stream<Item = io::Result<Plain>> {
    async_stream::stream! {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Small messages go at once; a connection where that cannot be said works all the same.
                    stream.set_nodelay(true).ok();
                    yield Ok(Plain { stream, peer, looked_at: false });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            }
        }
    }
}

impl AsyncRead for Plain {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if !self.looked_at
            && let Some(first) = buffer.filled().get(before)
        {
            self.looked_at = true;
            if *first == TLS_HANDSHAKE {
                let peer = self.peer;
                tracing::warn!(%peer, "a client speaks TLS to this plain port; with JDBC add useEncryption=false to the URL, with ADBC use grpc:// or grpc+tcp://");
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "TLS on a plain port")));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Plain {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connected for Plain {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}
