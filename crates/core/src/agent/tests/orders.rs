//! Tests of the effects of a dialect's orders.

use crate::agent::{AgentCx, AgentMachine};
use crate::client::{Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::effect::{AgentId, Effect};
use crate::ids::AgentRef;
use crate::shared::Shared;
use crate::testing::SettingsBuilder;
use acpipe_model::dialect::{Child, TransportOrder};
use acpipe_model::error::Error;
use acpipe_model::transport::Transport;
use acpipe_protocol::chunk::Chunk;
use std::time::Instant;

/// A client that ignores everything.
struct NoClients;

impl ClientSink for NoClients {
    fn reply(&mut self, _: Token, _: Result<Reply, Error>) {}
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, _: &[u8]) {}
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, _: &Notice) {}
}

struct Started {
    shared: Shared,
    machine: AgentMachine,
    id: AgentId,
}

impl Started {
    fn new() -> Self {
        let settings = SettingsBuilder::new(Instant::now()).build();
        let spec = settings.default_agent.spec.clone();
        let machine = AgentMachine::new(AgentRef(0), settings.default_agent.clone());
        let mut started = Self {
            shared: Shared::new(settings),
            machine,
            id: AgentId(0),
        };
        let effects = started.act(|machine, cx| {
            machine.start(spec, Vec::new(), cx);
        });
        let Some(Effect::Open(id, _)) = effects.first() else {
            panic!("it is started first: {effects:?}");
        };
        started.id = *id;
        started
    }

    /// Calls `act` and performs the dialect's orders.
    fn act(&mut self, act: impl FnOnce(&mut AgentMachine, &mut AgentCx<'_>)) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut cx = AgentCx {
            now: Instant::now(),
            shared: &mut self.shared,
            clients: &mut NoClients,
            effects: &mut effects,
        };
        act(&mut self.machine, &mut cx);
        let now = cx.now;
        self.machine.deliver(now, &mut self.shared, &mut effects);
        effects
    }

    /// Performs these orders for the agent's only process.
    fn order(&mut self, orders: impl IntoIterator<Item = TransportOrder>) -> Vec<Effect> {
        self.act(|machine, _| {
            let connection = machine.connection_mut().unwrap();
            for order in orders {
                connection.order(Child::MAIN, order);
            }
        })
    }
}

fn lines() -> TransportOrder {
    TransportOrder::Lines(b"x\n".to_vec())
}

#[test]
fn process_with_closed_input_continues() {
    let mut started = Started::new();
    let id = started.id;
    let effects = started.order([lines(), TransportOrder::FinishInput, lines()]);
    // Lines after it are dropped.
    assert_eq!(
        effects,
        [Effect::Send(id, b"x\n".to_vec()), Effect::FinishInput(id)]
    );
    assert!(
        started
            .machine
            .connection()
            .unwrap()
            .is_one_shot(Child::MAIN)
    );
    let connection = started.machine.connection().unwrap();
    assert!(connection.processes[0].stop.is_none());
    assert_eq!(started.order([TransportOrder::FinishInput, lines()]), []);
    // The process can still be stopped.
    assert_eq!(
        started.order([TransportOrder::Stop]),
        [Effect::Terminate(id)]
    );
}

#[test]
fn stopped_process_is_not_a_one_shot() {
    let mut started = Started::new();
    let id = started.id;
    assert_eq!(
        started.order([TransportOrder::Stop]),
        [Effect::CloseInput(id)]
    );
    assert_eq!(started.order([TransportOrder::FinishInput]), []);
    assert!(
        !started
            .machine
            .connection()
            .unwrap()
            .is_one_shot(Child::MAIN)
    );
}

#[test]
fn read_only_transport_has_no_input_and_agent_ends_without_it() {
    let mut started = Started::new();
    let (id, file) = (started.id, Child(7));
    let effects = started.act(|machine, _| {
        let out = machine.connection_mut().unwrap();
        out.order(file, TransportOrder::Open(Transport::File("/f".to_owned())));
        out.order(file, TransportOrder::FinishInput);
    });
    let opened = AgentId(id.0 + 1);
    let want = Effect::Open(opened, Transport::File("/f".to_owned()));
    assert_eq!(effects, [want]);
    let effects = started.act(|machine, cx| {
        assert!(!machine.begin_stopping(None, None, cx));
    });
    assert_eq!(effects, [Effect::CloseInput(id)]);
    let connection = started.machine.connection().unwrap();
    let left: Vec<Child> = connection.processes.iter().map(|p| p.child).collect();
    assert_eq!(left, [Child::MAIN]);
}
