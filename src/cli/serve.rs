//! `acpipe serve`: JSON-RPC server on stdin and stdout.

#[cfg(feature = "listen")]
use super::UsageError;
#[cfg(feature = "listen")]
use super::args::daemon::ResidentArgs;
use super::args::hints::parse;
use super::args::{Cli, ServeArgs, Verb};
#[cfg(feature = "listen")]
use super::daemon;
use super::daemon::{RelayFace, serve_by_daemon};
use super::logs::Logs;
use super::record::Recording;
use super::rpc::RpcClient;
use super::telemetry::Telemetry;
use super::{ContinuedSession, report, run_task};
use acpipe_agent::{Agent, AgentFactory};
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::agent_spec::AgentSpec;
use acpipe_core::hub::Hub;
use acpipe_host::{InProcessAgents, LoopOwner, LoopSetup, SUPERVISOR, drive, keep, read_stdin};
use acpipe_model::secret::Secrets;
use std::ffi::OsString;
use std::process::ExitCode;

pub async fn serve(args: ServeArgs, secrets: Secrets) -> anyhow::Result<u8> {
    #[cfg(feature = "listen")]
    if !args.listen.listen.is_empty() {
        return serve_http(args, secrets).await;
    }
    let attach = args.attach;
    if let Some(code) =
        serve_by_daemon(attach, &args.agent, &args.limits, RelayFace::Neutral).await?
    {
        return Ok(code);
    }
    serve_with(
        args,
        secrets,
        ContinuedSession::default(),
        InProcessAgents::new(),
    )
    .await
}

/// Serves HTTP clients in place of a client on stdin and stdout.
#[cfg(feature = "listen")]
async fn serve_http(args: ServeArgs, secrets: Secrets) -> anyhow::Result<u8> {
    if args.attach.daemon {
        let why = "--daemon cannot be used with --listen; give --listen to `acpipe daemon start`, or leave out --daemon";
        return Err(UsageError(why.to_owned()).into());
    }
    let resident = ResidentArgs {
        listen: args.listen,
        limits: args.limits,
        agent: args.agent,
    };
    daemon::serve_http(resident, secrets).await
}

async fn serve_with(
    args: ServeArgs,
    secrets: Secrets,
    origin: ContinuedSession,
    agents: InProcessAgents,
) -> anyhow::Result<u8> {
    let recording = Recording::start(&args.agent.record, &secrets)?;
    let telemetry = Telemetry::start(&args.agent, &secrets)?;
    let max_line = args.agent.max_line;
    let login = args.agent.login();
    let (store, stored) = super::store_for_clients(&args.agent.store)?;
    let mut settings = super::settings(&args.agent, &origin, &secrets)?;
    settings.idle_after = args.limits.idle_timeout.0;
    settings.max_sessions = args.limits.max_sessions.and_then(|max| max.try_into().ok());
    let launch = super::launch(&args.agent.store, &settings.limits);
    let hub = Hub::new(settings, store)
        .serving(args.agent.serving.offer())
        .reporting(telemetry.is_on());
    let stdin = read_stdin(max_line)?;
    let mut client = RpcClient::new(&secrets).recorded(recording.recorder());
    let setup = LoopSetup {
        input: Some(stdin),
        stored,
        max_line,
        login,
        launch,
        in_process: agents,
        recorder: recording.recorder(),
        reports: telemetry.sink(),
        owner: LoopOwner::Program,
    };
    drive(hub, &mut client, setup).await?;
    Ok(0)
}

/// Serves an agent as a program that speaks acpipe's neutral protocol on stdin and stdout, like
/// `acpipe serve` with this agent as the default agent.
///
/// This is the whole `main` of such a program. It takes the options of `acpipe serve`, uses the same
/// configuration and stores sessions in the same directory, under the name of the agent. It creates a runtime
/// of its own and must not be called inside one.
///
/// ```no_run
/// use acpipe::agent::{Agent, AgentError, StopReason, Turn};
///
/// struct Echo;
///
/// impl Agent for Echo {
///     async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
///         turn.text(turn.prompt().text()).await;
///         Ok(StopReason::EndTurn)
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     acpipe::serve_stdio(Echo)
/// }
/// ```
#[must_use]
pub fn serve_stdio(agent: impl Agent) -> ExitCode {
    serve_factory(&AgentFactory::shared(agent))
}

fn serve_factory(factory: &AgentFactory) -> ExitCode {
    let mut args = std::env::args_os();
    if args.next().is_some_and(|name| name == SUPERVISOR) {
        return ExitCode::from(keep(args));
    }
    let words = ["acpipe", "serve"].map(OsString::from);
    let words: Vec<OsString> = words.into_iter().chain(args).collect();
    match parse(&words) {
        Ok(cli) => report(serve_agent(cli, factory)),
        Err(shown) => report(shown),
    }
}

fn serve_agent(cli: Cli, factory: &AgentFactory) -> anyhow::Result<u8> {
    let Verb::Serve(args) = cli.verb else {
        unreachable!("the command line begins with `serve`");
    };
    let logs = Logs::begin(&cli.logs, false)?;
    logs.secrets.add_variables(&args.agent.variables());
    let name = factory.name();
    let cwd = super::directory(&args.agent)?;
    let origin = ContinuedSession {
        own: Some(AgentDefinition::new(
            &name,
            AgentSpec::in_process(&name, cwd),
        )),
        ..ContinuedSession::default()
    };
    let agents = InProcessAgents::from([(name, factory.runner())]);
    run_task(serve_with(args, logs.secrets.clone(), origin, agents))
}
