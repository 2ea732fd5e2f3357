//! A running server: from a configuration to a socket, and down again.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use asof_catalog::{Sessions, Warehouse};
use asof_query::{Engine, EngineConfig};
use asof_storage::Env;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::cpu::Cpu;
use crate::node::{Limits, Node};
use crate::plain;
use crate::service::Service;
use crate::signing::Signer;

/// Bytes of a message a client may send.
const LARGEST_MESSAGE: usize = 64 << 20;
/// HTTP/2 windows: uploads must not wait for round trips.
const STREAM_WINDOW: u32 = 8 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Bytes of headers: tokens are long.
const HEADERS: u32 = 64 << 10;
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// How often expired sessions are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// Why a server did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The warehouse could not be opened.
    #[error(transparent)]
    Warehouse(#[from] asof_catalog::Error),
    /// The engine could not be made.
    #[error(transparent)]
    Engine(#[from] asof_query::Error),
    /// The address could not be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The transport failed.
    #[error("the transport failed: {0}")]
    Transport(#[from] tonic::transport::Error),
}

/// A server that listens and does not serve yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    node: Arc<Node>,
    grace: Duration,
}

impl Server {
    /// Opens the warehouse and the socket. `cpu`: the runtime that plans and executes.
    ///
    /// # Errors
    /// `ServeError`.
    pub async fn open(config: &Config, env: Env, cpu: Handle) -> Result<Self, ServeError> {
        let warehouse = Arc::new(Warehouse::open(&config.warehouse, &config.catalog, env.clone())?);
        let signer = Signer::new(&warehouse.secret().await?);
        let limits = EngineConfig {
            memory_limit: config.memory_limit,
            statement_memory_limit: config.statement_memory_limit,
            parallelism: config.cpu_threads,
            spill_dir: config.spill_dir.clone(),
        };
        let engine = Arc::new(Engine::new(warehouse, env.clone(), &limits)?);
        let sessions = Arc::new(Sessions::new(env.clone(), config.session_ttl, &config.catalog, "main"));
        let limits = Limits { statement_bytes: config.max_statement };
        let node = Arc::new(Node::new(engine, sessions, signer, Cpu::new(cpu), env, limits));
        let failed = |source| ServeError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, node, grace: config.shutdown_grace })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its handlers share.
    #[must_use]
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Serves until `stop`; then takes no new connection or request, and gives what runs the grace time to end.
    ///
    /// # Errors
    /// `Transport`.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let stopping = CancellationToken::new();
        let sweeper = tokio::spawn(sweep(Arc::clone(&self.node.sessions)));
        let service = FlightServiceServer::new(Service::new(Arc::clone(&self.node)))
            .max_decoding_message_size(LARGEST_MESSAGE)
            .max_encoding_message_size(usize::MAX);
        let serving = tonic::transport::Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_max_header_list_size(HEADERS)
            .http2_keepalive_interval(Some(KEEP_ALIVE))
            .add_service(service)
            .serve_with_incoming_shutdown(plain::connections(self.listener), stopping.clone().cancelled_owned());
        let mut serving = std::pin::pin!(serving);
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = stop => {
                tracing::info!(running = self.node.running.len(), "shutting down");
                stopping.cancel();
                match tokio::time::timeout(self.grace, &mut serving).await {
                    Ok(ended) => ended,
                    Err(_) => {
                        tracing::warn!(running = self.node.running.len(), "the grace time is over: what still runs is cancelled");
                        Ok(())
                    }
                }
            }
        };
        sweeper.abort();
        Ok(ended?)
    }
}

/// Drops expired sessions, for ever.
async fn sweep(sessions: Arc<Sessions>) {
    let mut ticks = tokio::time::interval(SWEEP);
    loop {
        ticks.tick().await;
        let expired = sessions.sweep();
        if expired > 0 {
            tracing::debug!(expired, left = sessions.len(), "sessions expired");
        }
    }
}
