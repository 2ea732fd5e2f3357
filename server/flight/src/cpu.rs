//! Where statements are planned, executed and encoded: apart from the runtime that serves sockets, so that a long plan delays nobody's
//! headers.
//!
//! F2: dropping what [`Cpu::run`] or [`Cpu::stream`] gave stops the work, as does the end of its time: its interrupt is raised, because an
//! abortion alone would wait for the work's next pause. Time is kept here, on the caller's runtime, which no work holds up. A panic ends its
//! request only, with an id that is in the log.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use asof_query::{Interrupt, Reason};
use futures::Stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use crate::error::{Error, Result};
use crate::status;

/// Encoded messages that wait for a slow reader; the back-pressure.
const WAITING: usize = 3;

/// The CPU runtime.
#[derive(Clone, Debug)]
pub struct Cpu {
    runtime: Handle,
}

impl Cpu {
    /// On this runtime.
    #[must_use]
    pub fn new(runtime: Handle) -> Self {
        Self { runtime }
    }

    /// Runs a future there, for so long at most.
    ///
    /// # Errors
    /// Its own; `Timeout`; `Panic` when it panicked.
    pub async fn run<T, F>(&self, limit: Option<Duration>, work: impl FnOnce(Interrupt) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let interrupt = Interrupt::new();
        let mut task = Aborting { handle: self.runtime.spawn(work(interrupt.clone())), interrupt };
        let ended_task = tokio::select! {
            ended_task = &mut task.handle => ended_task,
            reason = over(limit) => {
                task.interrupt.raise(reason);
                return Err(reason.into());
            }
        };
        ended_task.unwrap_or_else(|e| Err(ended(e)))
    }

    /// Runs a producer there, for so long at most: it sends until it is done, interrupted, or nobody listens. What it gives is an error
    /// for the reason of its interrupt, whatever it failed with.
    pub fn stream<T, F>(&self, limit: Option<Duration>, produce: impl FnOnce(mpsc::Sender<Result<T>>, Interrupt) -> F) -> Produced<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(WAITING);
        let interrupt = Interrupt::new();
        let handle = self.runtime.spawn(produce(sender, interrupt.clone()));
        if limit.is_some() {
            let interrupt = interrupt.clone();
            tokio::spawn(async move {
                tokio::select! {
                    reason = over(limit) => interrupt.raise(reason),
                    _ = interrupt.wait() => (),
                }
            });
        }
        Produced { receiver, task: Some(Aborting { handle, interrupt }) }
    }
}

/// When the time is over.
async fn over(limit: Option<Duration>) -> Reason {
    match limit {
        Some(limit) => {
            tokio::time::sleep(limit).await;
            Reason::Timeout(limit)
        }
        None => std::future::pending().await,
    }
}

/// A task that ends with its handle.
struct Aborting<T> {
    handle: JoinHandle<T>,
    interrupt: Interrupt,
}

impl<T> Drop for Aborting<T> {
    fn drop(&mut self) {
        self.interrupt.raise(Reason::Gone);
        self.handle.abort();
    }
}

/// What a producer sends; after it, how the producer ended.
pub struct Produced<T> {
    receiver: mpsc::Receiver<Result<T>>,
    task: Option<Aborting<Result<()>>>,
}

impl<T> Stream for Produced<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(item) = std::task::ready!(self.receiver.poll_recv(cx)) {
            return Poll::Ready(Some(item));
        }
        let Some(task) = &mut self.task else { return Poll::Ready(None) };
        let end = std::task::ready!(Pin::new(&mut task.handle).poll(cx));
        self.task = None;
        match end {
            Ok(Ok(())) => Poll::Ready(None),
            Ok(Err(e)) => Poll::Ready(Some(Err(e))),
            Err(e) => Poll::Ready(Some(Err(ended(e)))),
        }
    }
}

fn ended(error: JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => {
            let id = status::new_id();
            let text = panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
            tracing::error!(%id, panic = text.unwrap_or_default(), "a statement panicked");
            Error::Panic { id }
        }
        Err(_) => Error::ShuttingDown,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_panic_ends_its_request_only() {
        let cpu = Cpu::new(Handle::current());
        let died: Result<()> = cpu.run(None, |_| async { panic!("on purpose") }).await;
        assert!(matches!(died, Err(Error::Panic { .. })));
        assert_eq!(cpu.run(None, |_| async { Ok(7) }).await.unwrap(), 7);
        let mut stream = Box::pin(cpu.stream(None, |sender: mpsc::Sender<Result<i32>>, _| async move {
            sender.send(Ok(1)).await.ok();
            panic!("on purpose")
        }));
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        assert!(matches!(stream.next().await, Some(Err(Error::Panic { .. }))));
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn dropping_the_stream_stops_the_work() {
        let cpu = Cpu::new(Handle::current());
        let held = Arc::new(());
        let weak = Arc::downgrade(&held);
        let mut stream = Box::pin(cpu.stream(None, |sender: mpsc::Sender<Result<i32>>, _| async move {
            sender.send(Ok(1)).await.ok();
            std::future::pending::<()>().await;
            drop(held);
            Ok(())
        }));
        stream.next().await;
        drop(stream);
        while weak.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_slow_reader_holds_the_producer_back() {
        let cpu = Cpu::new(Handle::current());
        let sent = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = Arc::clone(&sent);
        let mut stream = Box::pin(cpu.stream(None, |sender: mpsc::Sender<Result<usize>>, _| async move {
            for i in 0..100 {
                if sender.send(Ok(i)).await.is_err() {
                    break;
                }
                counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            Ok(())
        }));
        stream.next().await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(sent.load(std::sync::atomic::Ordering::Relaxed) <= WAITING + 1);
        assert_eq!(stream.count().await, 99);
    }
}
