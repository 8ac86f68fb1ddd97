//! The event loop: a single `select!` over all events, which owns all state.

mod agent_events;
mod transports;

use super::agent::{Agent, ProcessSettings};
use super::client::{ClientAction, ClientConnection};
use super::client_process::{self, ClientProcess};
use super::clock;
use super::descriptors;
use super::discover::LoginShell;
use super::host::{HOST_QUEUE, Host};
use super::http::{Http, HttpExchange};
use super::inbox::{self, EventSender};
use super::input::ClientInput;
use super::launches::Launch;
use super::loopback::Loopback;
use super::output::{Closed, Output, Pressure};
use super::program_search::{FoundPrograms, SEARCH_QUEUE, search};
use super::signals::{Interrupt, Signals};
use super::starter::Starter;
use super::store::Events;
use super::supervisor::codec::SupervisorOrder;
use crate::core::client::ClientId;
use crate::core::host::HostEvent;
use crate::core::hub::{AgentId, AgentInput, Effect, Hub};
use crate::core::idle_timer::{IdleTimer, format_duration};
use crate::core::limits::Timeout;
use crate::core::running_clock::RunningClock;
use crate::core::store::StoreEvent;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

/// Maximum number of messages read from a client that does not read its output.
const UNREAD_REQUESTS: u32 = 1024;

/// Time after which the log first notes that the client does not read. It is long because a pager pauses
/// while the user reads.
const UNREAD_FOR: Duration = Duration::from_secs(10);

/// Interval at which the core receives the time of day.
const TIME_OF_DAY_EVERY: Duration = Duration::from_secs(1);

/// Runs the loop until everything has ended. Lines of agents over `max_line` bytes are dropped, `login` is
/// queried for programs that are not in `PATH`, and processes carry the mark of `launch`.
///
/// # Errors
/// Threads or signal handlers could not be set up.
pub async fn drive(
    hub: Hub,
    client: &mut impl ClientConnection,
    stdin: Option<mpsc::Receiver<ClientInput>>,
    mut stored: Events,
    max_line: usize,
    (login, launch): (LoginShell, Arc<Launch>),
) -> std::io::Result<()> {
    let (events, mut inbox) = inbox::channel();
    let (host_events, mut handle_host_event) = mpsc::channel(HOST_QUEUE);
    let mut stdin = stdin;
    let (searches, mut found_programs) = mpsc::channel(SEARCH_QUEUE);
    let host = |terms| Host::new(host_events, terms);
    let mut shell = Shell::new(hub, (events, searches), host, max_line, (login, launch))?;
    let mut signals = Signals::new()?;
    let (mut interrupts, mut unread) = (0, 0);
    shell.settle(client, shell.clock.now());
    while !shell.finished || shell.output.is_pending() {
        let paused = shell.clock.note_step(Instant::now());
        shell.note_pause(paused);
        let room = !shell.output.is_full();
        // A client that does not read can still cancel; only one that floods acpipe meanwhile is not read.
        unread = if room { 0 } else { unread };
        let heard = unread < UNREAD_REQUESTS;
        shell.track_paused_reads(room);
        let (ticks, due) = shell.due(room);
        let stalled = shell.stalled_at(client);
        let unread_notice_at = shell.unread_at();
        let backlog = shell.backlog.is_some() || !inbox.is_empty();
        let awaited = due.map(|(at, _)| at).into_iter().chain(stalled).min();
        let wake = shell.clock.sleep(awaited);
        let [stalled_at, unread_notice_at] =
            [stalled, unread_notice_at].map(|at| at.map(|at| shell.clock.real(at)));
        shell.hub.rest(shell.clock.now());
        let happened = tokio::select! {
            () = inbox.arrival(), if room && !backlog => Wakeup::Agent,
            () = std::future::ready(()), if room && backlog => Wakeup::Room,
            () = std::future::ready(()), if room && shell.hub.is_reading() => Wakeup::Reading,
            input = next_input(&mut stdin), if heard => Wakeup::Client(input),
            event = stored.next() => Wakeup::Stored(event),
            // Enabled even if the client does not read, so that commands in terminals can continue.
            Some(event) = handle_host_event.recv() => Wakeup::Hosted(event),
            Some(found) = found_programs.recv() => Wakeup::Found(found),
            () = shell.output.progress() => Wakeup::Written,
            () = until(wake) => Wakeup::Due,
            () = until(stalled_at) => Wakeup::Stalled,
            () = until(unread_notice_at) => Wakeup::Unread,
            signal = signals.next() => Wakeup::Signal(signal),
            () = client_process::ended(shell.client_process.as_mut()) => Wakeup::ClientEnded,
        };
        let real = Instant::now();
        let paused = shell.clock.note_wakeup(real);
        shell.note_pause(paused);
        let now = shell.clock.now();
        shell.hub.wake(now);
        shell.report_health(client, now);
        match happened {
            Wakeup::Agent => shell.handle_queued_events(&mut inbox, client, now),
            Wakeup::Room => {
                if let Some((id, input)) = shell.backlog.take() {
                    shell.handle_agent_event(id, input, client, now);
                }
                shell.handle_queued_events(&mut inbox, client, now);
            }
            Wakeup::Reading => shell.hub.read_on(now, client),
            Wakeup::Client(input) => {
                unread += 1;
                if matches!(input, ClientInput::End) {
                    stdin = None;
                }
                client.input(input);
            }
            Wakeup::ClientEnded => {
                warn!("the client's process exited");
                shell.client_process = None;
                stdin = None;
                client.input(ClientInput::End);
            }
            Wakeup::Stored(event) => shell.hub.stored(event, now, client),
            Wakeup::Hosted(event) => shell.handle_host_event(Some(event), client, now),
            Wakeup::Found(found) => shell.hub.programs_found(found, now, client),
            Wakeup::Written => {}
            // The wake-up only checked the clock, or acpipe was suspended: pending input is read first.
            Wakeup::Due if !due.is_some_and(|(at, _)| shell.clock.is_due(at, real)) => {}
            Wakeup::Due if !ticks => shell.hub.tick_turn_limits(now, client),
            Wakeup::Due => {
                debug!(what = due.map(|(_, what)| what), "timer fired");
                shell.tick(&mut inbox, client, now);
            }
            Wakeup::Stalled => {
                if shell.stalled_at(client).is_some_and(|at| at <= now) {
                    warn!("the client does not read its output; unread output is dropped");
                    shell.output.give_up();
                }
            }
            Wakeup::Unread => shell.log_paused_reads(now),
            Wakeup::Signal(signal) => {
                interrupts += 1;
                client.interrupted(interrupts == 1, signal);
            }
        }
        shell.settle(client, now);
        if !inbox.is_empty() {
            // The first yield lets the driver find the readable pipes, the second lets their tasks read them.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

enum Wakeup {
    Agent,
    Room,
    Reading,
    Client(ClientInput),
    Stored(StoreEvent),
    Hosted(HostEvent),
    Found(FoundPrograms),
    Written,
    Due,
    Stalled,
    Unread,
    Signal(Interrupt),
    ClientEnded,
}

struct Shell {
    hub: Hub,
    output: Output,
    agents: BTreeMap<AgentId, Agent>,
    loopbacks: BTreeMap<AgentId, Loopback>,
    exchanges: BTreeMap<AgentId, HttpExchange>,
    http: Http,
    events: EventSender,
    /// Input of an agent that the hub cannot accept until the client reads.
    backlog: Option<(AgentId, AgentInput)>,
    host: Host,
    terms: ProcessSettings,
    login: Arc<LoginShell>,
    searches: mpsc::Sender<FoundPrograms>,
    finished: bool,
    /// Since when agents are not read because the client does not read.
    paused_reads: Option<IdleTimer>,
    client_process: Option<ClientProcess>,
    /// Clock whose time the core receives.
    clock: RunningClock,
    /// When the core last received the time of day.
    time_of_day_sent: Option<Instant>,
}

impl Shell {
    fn new(
        hub: Hub,
        (events, searches): (EventSender, mpsc::Sender<FoundPrograms>),
        host: impl FnOnce(ProcessSettings) -> Host,
        max_line: usize,
        (login, launch): (LoginShell, Arc<Launch>),
    ) -> std::io::Result<Self> {
        let terms = ProcessSettings {
            max_line,
            grace: hub.limits().of(Timeout::Terminate).unwrap_or_default(),
            descriptors: descriptors::raise(),
            launch,
            starter: Starter::new()?,
        };
        Ok(Self {
            hub,
            output: Output::new()?,
            agents: BTreeMap::new(),
            loopbacks: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            http: Http::default(),
            events,
            backlog: None,
            host: host(terms.clone()),
            terms,
            login: Arc::new(login),
            searches,
            finished: false,
            paused_reads: None,
            client_process: None,
            clock: RunningClock::new(Instant::now()),
            time_of_day_sent: None,
        })
    }

    /// Reports changes in the health of processes before the core handles the next event. Their tasks do not
    /// run meanwhile, because the runtime has one thread.
    fn report_health(&mut self, client: &mut impl ClientConnection, now: Instant) {
        for (id, agent) in &self.agents {
            if let Some(change) = agent.health_change() {
                // Only batches can be accepted in part.
                let _ = self.hub.agent(*id, AgentInput::Health(change), now, client);
            }
        }
    }

    /// Passes the result of a file or terminal operation to the hub, and starts queued operations that it
    /// makes room for.
    fn handle_host_event(
        &mut self,
        event: Option<HostEvent>,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        let mut next = event;
        while let Some(event) = next {
            next = self.host.heard(&event);
            self.hub.handle_host_event(event, now, client);
        }
    }

    /// Moves the client's output to stdout's buffer, after the log is written.
    fn hand_over(&mut self, client: &mut impl ClientConnection, now: Instant) {
        self.hub.commit(now, client);
        client.take_output(&mut self.output.buffer);
    }

    /// Performs everything that follows from an event, then writes the output.
    fn settle(&mut self, client: &mut impl ClientConnection, now: Instant) {
        loop {
            client.set_backpressure(self.output.pressure());
            while let Some(action) = client.next_action() {
                self.handle(action, client, now);
            }
            self.perform(client, now);
            client.set_backpressure(self.output.pressure());
            if self.output.pressure() != Pressure::Full {
                self.hub.catch_up(now, client);
                self.hub.replay_turns(client);
            }
            self.hand_over(client, now);
            self.output.flush();
            if let Some(why) = self.output.closed()
                && !self.hub.is_ending()
            {
                client.left(match why {
                    Closed::Failed(errno) => Some(errno.into()),
                    Closed::ReaderLeft | Closed::GivenUp => None,
                });
                self.end(client, now);
                continue;
            }
            let Some(action) = client.next_action() else {
                client.on_settled(!self.output.is_pending());
                return;
            };
            self.handle(action, client, now);
        }
    }

    fn handle(&mut self, action: ClientAction, client: &mut impl ClientConnection, now: Instant) {
        match action {
            ClientAction::Command(token, command) => self.hub.command(token, command, now, client),
            ClientAction::Answer(ask, answer) => {
                let id = ClientId::FIRST;
                self.hub.client_answered(id, ask, &answer, now, client);
            }
            ClientAction::End => self.end(client, now),
            ClientAction::Hurry => {
                self.end(client, now);
                self.hub.expedite(now, client);
            }
        }
    }

    fn stalled_at(&mut self, client: &impl ClientConnection) -> Option<Instant> {
        let max_read_delay = client.max_read_delay().filter(|_| self.hub.is_ending())?;
        self.output.stalled_at(max_read_delay)
    }

    /// Returns the next deadline, and whether all timers run: while the client does not read, only the limit
    /// of turns does.
    fn due(&self, room: bool) -> (bool, Option<(Instant, &'static str)>) {
        if room || self.hub.is_stopping() {
            (true, self.hub.deadline())
        } else {
            (false, self.hub.turn_deadline())
        }
    }

    /// Records the time in which acpipe was suspended, and passes the time of day to the core at intervals.
    fn note_pause(&mut self, paused: Option<Duration>) {
        if let Some(paused) = paused {
            clock::note_paused(self.clock.paused());
            info!(
                "acpipe did not run for {}; timeouts are extended",
                format_duration(paused)
            );
        }
        let now = self.clock.now();
        let is_new = |told: Instant| now.saturating_duration_since(told) < TIME_OF_DAY_EVERY;
        if paused.is_some() || !self.time_of_day_sent.is_some_and(is_new) {
            self.time_of_day_sent = Some(now);
            self.hub.set_time_of_day(now, clock::unix_ms());
        }
    }

    /// Postpones agents' timeouts by the time in which agents were not read.
    fn track_paused_reads(&mut self, room: bool) {
        let now = self.clock.now();
        match (room, self.paused_reads.take()) {
            (false, paused_reads) => {
                self.paused_reads = paused_reads.or(Some(IdleTimer::begin(now, None)));
            }
            (true, Some(paused_reads)) => self.hub.postpone(paused_reads.elapsed(now)),
            (true, None) => {}
        }
    }

    /// Returns when the log notes that the client does not read.
    fn unread_at(&self) -> Option<Instant> {
        self.paused_reads.as_ref()?.notice_at(UNREAD_FOR)
    }

    /// Logs that the client does not read; a message to the client would not arrive.
    fn log_paused_reads(&mut self, now: Instant) {
        if let Some(paused_reads) = &mut self.paused_reads {
            paused_reads.note_notice(UNREAD_FOR, now);
            let elapsed = format_duration(paused_reads.elapsed(now));
            info!("the client has not read its output for {elapsed}; agents are paused");
        }
    }

    fn end(&mut self, client: &mut impl ClientConnection, now: Instant) {
        if !self.hub.is_ending() {
            self.hub.client_disconnected(now, client);
        }
    }

    fn perform(&mut self, client: &mut impl ClientConnection, now: Instant) {
        loop {
            let effects = self.hub.effects(now);
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.perform_one(effect, client, now);
            }
        }
    }

    fn perform_one(&mut self, effect: Effect, client: &mut impl ClientConnection, now: Instant) {
        match effect {
            Effect::Open(id, transport) => self.open(id, transport),
            Effect::Send(id, lines) => self.send(id, lines, client, now),
            Effect::FinishInput(id) => self.with_agent(id, Agent::finish_input),
            Effect::CloseInput(id) => self.close_input(id),
            Effect::Terminate(id) => self.signal(id, SupervisorOrder::Terminate),
            Effect::Kill(id) => self.signal(id, SupervisorOrder::Kill),
            Effect::Measure(id) => self.with_agent(id, |agent| agent.measure()),
            Effect::FindPrograms(ticket, specs) => {
                let (login, terms) = (Arc::clone(&self.login), self.terms.clone());
                search((ticket, specs), login, terms, self.searches.clone());
            }
            Effect::Host(effect) => {
                let event = self.host.perform(effect);
                self.handle_host_event(event, client, now);
            }
            Effect::Watch(process) => self.client_process = ClientProcess::watch(process),
            Effect::Finished => self.finished = true,
        }
    }
}

async fn next_input(stdin: &mut Option<mpsc::Receiver<ClientInput>>) -> ClientInput {
    match stdin {
        Some(stdin) => stdin.recv().await.unwrap_or(ClientInput::End),
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
