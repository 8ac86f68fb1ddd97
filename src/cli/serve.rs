//! `acpipe serve`: the daemon on stdin and stdout.

use super::args::ServeArgs;
use super::logs::Secrets;
use super::rpc::RpcClient;
use crate::core::bridge::Bridge;
use crate::shell::{drive, read_stdin};

pub async fn serve(args: ServeArgs, secrets: Secrets) -> anyhow::Result<u8> {
    let max_line = args.agent.max_line;
    let login = args.agent.login();
    let (store, stored) = super::store(&args.agent.store)?;
    let bridge = Bridge::new(super::settings(&args.agent)?, store);
    let stdin = read_stdin(max_line)?;
    let mut client = RpcClient::new(secrets);
    drive(bridge, &mut client, Some(stdin), stored, max_line, login).await?;
    Ok(0)
}
