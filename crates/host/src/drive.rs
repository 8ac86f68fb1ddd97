//! The event loop: a single `select!` over all events, which owns all state.

mod agent_events;
mod alarm;
mod setup;
mod transports;

use super::agent::{AgentHandle, ProcessSettings};
use super::client::{ClientAction, ClientConnection};
use super::client_process::{self, ClientProcess};
use super::discover::LoginShell;
use super::host::{HOST_QUEUE, HostHandles};
use super::http::{Http, HttpExchange};
use super::in_process::InProcessAgents;
use super::inbox::{self, EventSender};
use super::launches::Launch;
use super::loopback::Loopback;
use super::output::{ClientStdout, Pressure};
use super::program_search::{FoundPrograms, SEARCH_QUEUE, search};
use super::recorder::Recorder;
use super::signals::{Interrupt, Signals};
use super::starter::Starter;
use super::supervisor::codec::SupervisorOrder;
use super::{clock, descriptors};
use acpipe_core::hub::{AgentId, AgentInput, Effect, Hub, HubCx};
use acpipe_core::running_clock::RunningClock;
use acpipe_core::store::StoreEvent;
use acpipe_model::host::HostEvent;
use acpipe_model::idle_timer::{IdleTimer, format_duration};
use acpipe_model::limits::Timeout;
use alarm::Alarm;
pub use setup::{LoopOwner, LoopSetup, ReportSink};
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

/// Runs the loop until everything has ended.
///
/// # Errors
/// Threads or signal handlers could not be set up, or stdout could not be written (`StdoutError`).
pub async fn drive<C: ClientConnection>(
    hub: Hub,
    client: &mut C,
    setup: LoopSetup<C::Input>,
) -> std::io::Result<()> {
    let (events, mut inbox) = inbox::channel();
    let (host_events, mut handle_host_event) = mpsc::channel(HOST_QUEUE);
    let (mut messages, mut stored) = (setup.input, setup.stored);
    let (searches, mut found_programs) = mpsc::channel(SEARCH_QUEUE);
    let processes = (setup.max_line, setup.login, setup.launch);
    let channels = (events, searches, host_events);
    let (mut shell, mut signals) = Shell::begin(hub, setup.owner, processes, channels)?;
    shell.in_process = setup.in_process;
    (shell.recorder, shell.reports) = (setup.recorder, setup.reports);
    let (mut interrupts, mut unread, mut alarm) = (0, 0, Alarm::default());
    shell.settle(client, shell.clock.now());
    while !shell.finished || shell.is_output_pending() {
        let paused = shell.clock.note_step(Instant::now());
        shell.note_pause(paused);
        shell.share_output(client);
        let room = shell.has_room();
        // A client that does not read can still cancel; only one that floods acpipe meanwhile is not read.
        unread = if room { 0 } else { unread };
        let (heard, reads) = (unread < UNREAD_REQUESTS, room && shell.is_reading(client));
        shell.track_paused_reads(room);
        shell.postpone_held();
        let (ticks, due) = shell.due(room);
        let (stalled, unread_notice_at) = (shell.stalled_at(client), shell.unread_at());
        let (backlog, held) = (!inbox.is_empty(), room && !shell.held.is_empty());
        let awaited = due.map(|(at, _)| at).into_iter().chain(stalled).min();
        let wake = shell.clock.sleep(awaited);
        let [stalled_at, unread_notice_at] =
            [stalled, unread_notice_at].map(|at| at.map(|at| shell.clock.real(at)));
        shell.hub.rest(shell.clock.now());
        let happened = tokio::select! {
            () = inbox.arrival(), if room && !backlog => Wakeup::Agent,
            () = std::future::ready(()), if room && backlog => Wakeup::Room,
            () = std::future::ready(()), if reads => Wakeup::Reading,
            input = next_input(&mut messages), if heard => Wakeup::Client(input),
            () = client.room(held) => Wakeup::ClientRoom,
            event = stored.next() => Wakeup::Stored(event),
            // Enabled even if the client does not read, so that commands in terminals can continue.
            Some(event) = handle_host_event.recv() => Wakeup::Hosted(event),
            Some(found) = found_programs.recv() => Wakeup::Found(found),
            () = progress(&mut shell.output) => Wakeup::Written,
            () = alarm.until(wake) => Wakeup::Due,
            () = until(stalled_at) => Wakeup::Stalled,
            () = until(unread_notice_at) => Wakeup::Unread,
            signal = next_signal(&mut signals) => Wakeup::Signal(signal),
            () = client_process::ended(shell.client_process.as_mut()) => Wakeup::ClientEnded,
        };
        let real = Instant::now();
        let paused = shell.clock.note_wakeup(real);
        shell.note_pause(paused);
        let now = shell.clock.now();
        shell.hub.wake(now);
        shell.report_health(client, now);
        let may_make_room = !matches!(happened, Wakeup::Agent | Wakeup::Room);
        match happened {
            Wakeup::Agent | Wakeup::Room => {
                shell.handle_queued_events(&mut inbox, client, now);
            }
            Wakeup::Reading => shell.hub.read_on(&mut HubCx::new(now, client)),
            Wakeup::Client(input) => {
                unread += 1;
                if let Some(input) = input {
                    client.input(input);
                } else {
                    messages = None;
                    client.input_ended();
                }
            }
            Wakeup::ClientEnded => {
                warn!("the client's process exited");
                shell.client_process = None;
                messages = None;
                client.input_ended();
            }
            Wakeup::Stored(event) => shell.hub.stored(event, &mut HubCx::new(now, client)),
            Wakeup::Hosted(event) => shell.handle_host_event(Some(event), client, now),
            Wakeup::Found(all) => shell.hub.programs_found(all, &mut HubCx::new(now, client)),
            Wakeup::Written | Wakeup::ClientRoom => {}
            // The wake-up only checked the clock, or acpipe was suspended: pending input is read first.
            Wakeup::Due if !due.is_some_and(|(at, _)| shell.clock.is_due(at, real)) => {}
            Wakeup::Due if !ticks => shell.hub.tick_turn_limits(&mut HubCx::new(now, client)),
            Wakeup::Due => {
                debug!(what = due.map(|(_, what)| what), "timer fired");
                shell.tick(&mut inbox, client, now);
            }
            Wakeup::Stalled => shell.give_up_stalled_output(client, now),
            Wakeup::Unread => shell.log_paused_reads(now),
            Wakeup::Signal(signal) => {
                interrupts += 1;
                client.interrupted(interrupts == 1, signal);
            }
        }
        shell.settle(client, now);
        if may_make_room {
            shell.retry_held_agents(&mut inbox, client, now);
        }
        if reads || !inbox.is_empty() {
            // The driver finds the readable pipes, and their tasks read them first. The tasks of connections send what
            // was read from the history.
            tokio::task::yield_now().await;
        }
    }
    // Found only here if the last write fails: a turn has ended, and its result is the last output.
    shell.output.as_ref().map_or(Ok(()), ClientStdout::result)
}

enum Wakeup<I> {
    Agent,
    Room,
    ClientRoom,
    Reading,
    Client(Option<I>),
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

/// Agents whose clients have no room: the part of their output that the hub did not accept, and the time up
/// to which their timeouts are postponed.
type HeldAgents = BTreeMap<AgentId, (AgentInput, Instant)>;

struct Shell {
    hub: Hub,
    /// Stdout; `None` if it does not belong to the clients.
    output: Option<ClientStdout>,
    agents: BTreeMap<AgentId, AgentHandle>,
    loopbacks: BTreeMap<AgentId, Loopback>,
    exchanges: BTreeMap<AgentId, HttpExchange>,
    http: Http,
    events: EventSender,
    /// Agents whose output the hub cannot accept until their clients read.
    held: HeldAgents,
    /// The held agent whose output was accepted last.
    last_retried: AgentId,
    /// `true` if the last retry of held agents handled a slice of another agent first. Every second retry does.
    slice_is_first: bool,
    host: HostHandles,
    terms: ProcessSettings,
    login: Arc<LoginShell>,
    in_process: InProcessAgents,
    /// Recorder of the tape; `None` if nothing is recorded.
    recorder: Option<Recorder>,
    reports: ReportSink,
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
    /// Opens what belongs to the owner of the process, and the handlers of its signals.
    fn begin(
        hub: Hub,
        owner: LoopOwner,
        (max_line, login, launch): (usize, LoginShell, Arc<Launch>),
        (events, searches, host_events): (
            EventSender,
            mpsc::Sender<FoundPrograms>,
            mpsc::Sender<HostEvent>,
        ),
    ) -> std::io::Result<(Self, Option<Signals>)> {
        let is_program = matches!(owner, LoopOwner::Program);
        let owns_process = is_program || matches!(owner, LoopOwner::Daemon);
        let terms = ProcessSettings {
            max_line,
            grace: hub.limits().of(Timeout::Terminate).unwrap_or_default(),
            descriptors: owns_process.then(descriptors::raise).flatten(),
            launch,
            starter: Starter::default(),
            supervision: owner.supervision(),
        };
        let output = is_program.then(ClientStdout::new).transpose()?;
        let signals = owns_process.then(Signals::new).transpose()?;
        let shell = Self {
            hub,
            output,
            agents: BTreeMap::new(),
            loopbacks: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            http: Http::default(),
            events,
            held: HeldAgents::default(),
            last_retried: AgentId(0),
            slice_is_first: false,
            host: HostHandles::new(host_events, terms.clone()),
            terms,
            login: Arc::new(login),
            in_process: InProcessAgents::new(),
            recorder: None,
            reports: Box::new(drop),
            searches,
            finished: false,
            paused_reads: None,
            client_process: None,
            clock: RunningClock::new(Instant::now()),
            time_of_day_sent: None,
        };
        Ok((shell, signals))
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
            self.hub
                .handle_host_event(event, &mut HubCx::new(now, client));
        }
    }

    /// Hands over the clients' output, after the log is written.
    fn hand_over(&mut self, client: &mut impl ClientConnection, now: Instant) {
        self.hub.commit(&mut HubCx::new(now, client));
        match &mut self.output {
            Some(output) => client.take_output(&mut output.buffer),
            None => client.take_output(&mut Vec::new()),
        }
    }

    /// Returns `true` if agents may be read as far as stdout is concerned.
    fn has_room(&self) -> bool {
        !self.output.as_ref().is_some_and(ClientStdout::is_full)
    }

    fn pressure(&self) -> Pressure {
        let output = self.output.as_ref();
        output.map_or(Pressure::None, ClientStdout::pressure)
    }

    fn is_output_pending(&self) -> bool {
        self.output.as_ref().is_some_and(ClientStdout::is_pending)
    }

    fn flush_output(&mut self) {
        if let Some(output) = &mut self.output {
            output.flush();
        }
    }

    fn give_up_stalled_output(&mut self, client: &mut impl ClientConnection, now: Instant) {
        if self.stalled_at(client).is_some_and(|at| at <= now)
            && let Some(output) = &mut self.output
        {
            output.give_up();
            client.output_dropped();
        }
    }

    /// Performs everything that follows from an event, then writes the output.
    fn settle(&mut self, client: &mut impl ClientConnection, now: Instant) {
        loop {
            client.set_backpressure(self.pressure());
            while let Some(action) = client.next_action() {
                self.handle(action, client, now);
            }
            self.perform(client, now);
            client.set_backpressure(self.pressure());
            if self.pressure() != Pressure::Full {
                self.hub.catch_up(&mut HubCx::new(now, client));
                self.hub.replay_turns(client);
            }
            self.hand_over(client, now);
            self.flush_output();
            if self.output.as_ref().is_some_and(ClientStdout::is_closed) && !self.hub.is_ending() {
                client.left();
                self.end(client, now);
                continue;
            }
            let Some(action) = client.next_action() else {
                client.on_settled(!self.is_output_pending());
                return;
            };
            self.handle(action, client, now);
        }
    }

    fn handle(&mut self, action: ClientAction, client: &mut impl ClientConnection, now: Instant) {
        match action {
            ClientAction::Command(token, command) => {
                let cx = &mut HubCx::new(now, client);
                self.hub.command(token, command, cx);
            }
            ClientAction::Answer(id, ask, answer) => {
                self.hub
                    .client_answered(id, ask, &answer, &mut HubCx::new(now, client));
            }
            ClientAction::Join(id, settings) => {
                let joined = self.hub.client_joined(id, settings);
                joined.unwrap_or_else(|error| client.refuse(id, error));
            }
            ClientAction::Metrics(wanted) => drop(wanted.send(self.hub.metrics())),
            ClientAction::Leave(id) => self.hub.client_left(id, &mut HubCx::new(now, client)),
            ClientAction::End => self.end(client, now),
            ClientAction::Hurry => {
                self.end(client, now);
                self.hub.expedite(&mut HubCx::new(now, client));
            }
        }
    }

    fn stalled_at(&mut self, client: &impl ClientConnection) -> Option<Instant> {
        let is_ending = self.hub.is_ending();
        let wait = self.output.as_mut()?.wait(is_ending)?;
        client.drops_output_at(wait)
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
            self.hub.client_disconnected(&mut HubCx::new(now, client));
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
            Effect::FinishInput(id) => self.with_agent(id, AgentHandle::finish_input),
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
            Effect::Report(report) => (self.reports)(report),
            Effect::Finished => self.finished = true,
        }
    }
}

async fn next_input<I>(messages: &mut Option<mpsc::Receiver<I>>) -> Option<I> {
    match messages {
        Some(messages) => messages.recv().await,
        None => std::future::pending().await,
    }
}

async fn progress(output: &mut Option<ClientStdout>) {
    match output {
        Some(output) => output.progress().await,
        None => std::future::pending().await,
    }
}

async fn next_signal(signals: &mut Option<Signals>) -> Interrupt {
    match signals {
        Some(signals) => signals.next().await,
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    Alarm::default().until(due).await;
}
