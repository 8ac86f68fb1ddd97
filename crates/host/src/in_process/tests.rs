//! Agents inside this program: their lines, and how they end.

use super::*;
use crate::inbox;
use crate::inbox::Inbox;
use std::future::pending;

/// Agent under test, and the queue of its events.
struct Running {
    agent: AgentHandle,
    inbox: Inbox,
}

impl Running {
    fn start<F, R>(run: F) -> Self
    where
        F: Fn(mpsc::Receiver<Bytes>, mpsc::Sender<Bytes>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        let run: InProcessAgent = Arc::new(move |input, out| Box::pin(run(input, out)));
        let (events, inbox) = inbox::channel();
        let agent = start(AgentId(1), "own", Some(&run), events, None);
        Self { agent, inbox }
    }

    async fn next(&mut self) -> AgentInput {
        self.inbox.arrival().await;
        self.inbox.next_whole().unwrap().1
    }

    /// Returns the bytes until the end, and the end.
    async fn rest(&mut self) -> (String, Exit) {
        let mut said = String::new();
        loop {
            match self.next().await {
                AgentInput::Batch(Batch::Lines(lines)) => {
                    said.push_str(std::str::from_utf8(&lines).unwrap());
                }
                AgentInput::Exited(exit) => return (said, exit),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn lines_arrive_in_order_before_the_end() {
    let mut running = Running::start(async |mut input, out| {
        while let Some(lines) = input.recv().await {
            for _ in 0..100 {
                out.send(lines.clone()).await.unwrap();
            }
        }
        out.send(Bytes::from("bye\n")).await.unwrap();
        Ok(())
    });
    running.agent.send(b"a\n".to_vec()).unwrap();
    running.agent.send(b"b\n".to_vec()).unwrap();
    running.agent.close_input();
    let (said, exit) = running.rest().await;
    let want = "a\n".repeat(100) + &"b\n".repeat(100) + "bye\n";
    assert_eq!(said, want);
    assert_eq!((exit.code, exit.signal), (Some(0), None));
}

#[tokio::test]
async fn end_of_an_agent_names_its_reason() {
    let mut failed = Running::start(async |_, out| {
        out.send(Bytes::from("a\n")).await.unwrap();
        Err("disk on fire".to_owned())
    });
    let (said, exit) = failed.rest().await;
    assert_eq!((said.as_str(), exit.code), ("a\n", Some(1)));
    assert_eq!(exit.stderr, "disk on fire");
    let mut panicked = Running::start(async |_, _| panic!("out of cheese"));
    let (_, exit) = panicked.rest().await;
    assert_eq!(exit.code, Some(PANICKED));
    assert_eq!(exit.stderr, "the agent panicked: out of cheese");
    assert!(panicked.agent.health_change().is_some());
}

#[tokio::test]
async fn order_ends_an_agent_that_never_ends() {
    for (order, signal) in [
        (SupervisorOrder::Terminate, SIGTERM),
        (SupervisorOrder::Kill, SIGKILL),
    ] {
        let (alive, dead) = tokio::sync::oneshot::channel::<()>();
        let alive = std::sync::Mutex::new(Some(alive));
        let mut running = Running::start(move |_, _| {
            let alive = alive.lock().unwrap().take();
            async move {
                let _alive = alive;
                pending().await
            }
        });
        running.agent.measure();
        assert!(matches!(running.next().await, AgentInput::Measured(_)));
        running.agent.order(order);
        let (_, exit) = running.rest().await;
        assert_eq!((exit.code, exit.signal), (None, Some(signal)));
        assert!(dead.await.is_err(), "the agent's state is dropped");
    }
}

#[tokio::test]
async fn agent_ends_with_its_handle() {
    let (alive, dead) = tokio::sync::oneshot::channel::<()>();
    let alive = std::sync::Mutex::new(Some(alive));
    let running = Running::start(move |_, _| {
        let alive = alive.lock().unwrap().take();
        async move {
            let _alive = alive;
            pending().await
        }
    });
    tokio::task::yield_now().await;
    drop(running);
    assert!(dead.await.is_err());
}

#[tokio::test]
async fn agent_waits_while_the_loop_handles_its_output() {
    let written = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&written);
    let mut running = Running::start(move |_, out| {
        let counted = Arc::clone(&counted);
        async move {
            for _ in 0..1000 {
                out.send(Bytes::from("line\n")).await.unwrap();
                counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
            Ok(())
        }
    });
    running.inbox.arrival().await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let before = written.load(std::sync::atomic::Ordering::SeqCst);
    assert!(before <= 3 * QUEUE, "{before}");
    let first = running.inbox.next_whole().unwrap().1;
    let AgentInput::Batch(Batch::Lines(first)) = first else {
        panic!("{first:?}");
    };
    let (rest, _) = running.rest().await;
    assert_eq!(first.len() + rest.len(), 5000);
}

#[tokio::test]
async fn unregistered_agent_fails_to_start() {
    let (events, mut inbox) = inbox::channel();
    let _agent = start(AgentId(1), "own", None, events, None);
    inbox.arrival().await;
    match inbox.next_whole().unwrap().1 {
        AgentInput::StartFailed(error) => {
            assert_eq!(error.kind, ErrorKind::AgentNotFound);
            assert_eq!(
                error.message,
                "cannot start agent \"own\": it is not registered in this program"
            );
        }
        other => panic!("{other:?}"),
    }
}
