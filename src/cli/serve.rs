//! `acpipe serve`: JSON-RPC server on stdin and stdout.

use super::args::ServeArgs;
use super::logs::Secrets;
use super::rpc::RpcClient;
use crate::core::hub::Hub;
use crate::shell::{LoopOwner, LoopSetup, drive, read_stdin};

pub async fn serve(args: ServeArgs, secrets: Secrets) -> anyhow::Result<u8> {
    let max_line = args.agent.max_line;
    let login = args.agent.login();
    let (store, stored) = super::store_for_clients(&args.agent.store)?;
    let mut settings = super::settings(&args.agent, &super::Origin::default(), &secrets)?;
    settings.idle_after = args.limits.idle_timeout.0;
    settings.max_sessions = args.limits.max_sessions.and_then(|max| max.try_into().ok());
    let hub = Hub::new(settings, store).serving(args.agent.serving.offer());
    let stdin = read_stdin(max_line)?;
    let mut client = RpcClient::new(secrets);
    let launch = super::launch(&args.agent.store, &hub);
    let setup = LoopSetup {
        input: Some(stdin),
        stored,
        max_line,
        login,
        launch,
        owner: LoopOwner::Program,
    };
    drive(hub, &mut client, setup).await?;
    Ok(0)
}
