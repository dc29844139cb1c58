//! The command line, and each command from question to text and exit code.

use std::path::PathBuf;

use aether_api::admin::{
    ChainRequest, ConditionsRequest, EventsRequest, LogLevelRequest, ModulesRequest, PodsRequest,
    TakeoverRequest,
};
use aether_domain::chain::State;
use aether_domain::paths::ADMIN_SOCKET_PATH;
use clap::{Parser, Subcommand, ValueEnum};

use crate::ask::{self, Admin};
use crate::policy;
use crate::render::{self, modules, takeover};

/// How the process ends.
pub(crate) mod exit {
    /// The question was answered; for `chain`: and the node is chained.
    pub(crate) const OK: u8 = 0;
    /// The question could not be answered.
    pub(crate) const FAILED: u8 = 1;
    /// `chain` was answered: the node is not chained.
    pub(crate) const NOT_CHAINED: u8 = 3;
    /// `conditions` was answered: the agent is not ready.
    pub(crate) const NOT_READY: u8 = 4;
    /// `policy test`: a scenario came out otherwise.
    pub(crate) const NOT_AS_EXPECTED: u8 = 5;
}

const AFTER_HELP: &str = "Exit codes: 0 answered (chain: and the node is chained); 1 nothing answered, or the agent refused; \
2 wrong arguments; 3 chain: the node is not chained (stripped, drifted, no-list, invalid, uninstalled or unknown); \
4 conditions: the agent is not ready; 5 policy test: a scenario did not come out as expected.";

/// Asks a node's agent over its admin socket.
#[derive(Debug, Parser)]
#[command(name = "aetherctl", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The agent's admin socket; inside the agent's pod, or the node, whichever the agent's --local-dir names.
    #[arg(long, global = true, env = "AETHER_ADMIN_SOCKET", value_name = "PATH", default_value = ADMIN_SOCKET_PATH)]
    admin_socket: PathBuf,
    /// How to print the answer.
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Output {
    /// For eyes.
    Table,
    /// For programs; keys are only ever added.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The attachments that the agent has recorded, and the files it could not use.
    Pods,
    /// Whether our entry is in the list that the container runtime would load. Exit code 0: chained, 3: not.
    Chain,
    /// The behaviour modules: what runs, how it does, and what is wrong with the operator's files.
    Modules,
    /// What a person should act on, as far as the agent still keeps it.
    Events,
    /// What readiness is made of. Exit code 0: ready, 4: not.
    Conditions,
    /// Where the agent stands on its node, and its last takeover step by step.
    Takeover,
    /// Writes, tries and packs an operator's policy. Asks no agent.
    Policy {
        #[command(subcommand)]
        command: policy::Command,
    },
    /// Shows the agent's log level, or changes it until the agent ends.
    LogLevel {
        /// error, warn, info, debug or trace, or directives like `info,aether_pod_store=debug`.
        directives: Option<String>,
    },
}

/// Asks, and returns what to print and the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<(String, u8)> {
    if let Command::Policy { command } = &args.command {
        return policy::run(command, args.output);
    }
    let mut admin = Admin::connect(&args.admin_socket).await?;
    match &args.command {
        // Answered above, without an agent.
        Command::Policy { .. } => Ok((String::new(), exit::OK)),
        Command::Pods => {
            let answer = admin.ask("list the pods", async |client| client.pods(PodsRequest {}).await).await?;
            let pods = render::Pods::from(answer);
            let text = match args.output {
                Output::Table => pods.table(),
                Output::Json => render::json(&pods)?,
            };
            Ok((text, exit::OK))
        }
        Command::Chain => {
            let answer = admin
                .ask("tell the chain's state", async |client| client.chain(ChainRequest {}).await)
                .await?;
            let code = if answer.state == State::Chained.name() { exit::OK } else { exit::NOT_CHAINED };
            let chain = render::Chain::from(answer);
            let text = match args.output {
                Output::Table => chain.table(ask::now()),
                Output::Json => render::json(&chain)?,
            };
            Ok((text, code))
        }
        Command::Modules => {
            let answer =
                admin.ask("list its modules", async |client| client.modules(ModulesRequest {}).await).await?;
            let modules = modules::Modules::from(answer);
            let text = match args.output {
                Output::Table => modules.table(),
                Output::Json => render::json(&modules)?,
            };
            Ok((text, exit::OK))
        }
        Command::Events => {
            let answer =
                admin.ask("list its events", async |client| client.events(EventsRequest {}).await).await?;
            let events = modules::Events::from(answer);
            let text = match args.output {
                Output::Table => events.table(ask::now()),
                Output::Json => render::json(&events)?,
            };
            Ok((text, exit::OK))
        }
        Command::Conditions => {
            let answer = admin
                .ask("tell its conditions", async |client| client.conditions(ConditionsRequest {}).await)
                .await?;
            let code = if answer.ready { exit::OK } else { exit::NOT_READY };
            let conditions = modules::Conditions::from(answer);
            let text = match args.output {
                Output::Table => conditions.table(),
                Output::Json => render::json(&conditions)?,
            };
            Ok((text, code))
        }
        Command::Takeover => {
            let answer = admin
                .ask("tell its last takeover", async |client| client.takeover(TakeoverRequest {}).await)
                .await?;
            let takeover = takeover::Takeover::from(answer);
            let text = match args.output {
                Output::Table => takeover.table(),
                Output::Json => render::json(&takeover)?,
            };
            Ok((text, exit::OK))
        }
        Command::LogLevel { directives } => {
            let request = LogLevelRequest { directives: directives.clone().unwrap_or_default() };
            let what = if directives.is_some() { "change its log level" } else { "tell its log level" };
            let answer = admin.ask(what, async |client| client.log_level(request.clone()).await).await?;
            let level = render::LogLevel::from(answer);
            let text = match args.output {
                Output::Table => format!("{}\n", level.directives),
                Output::Json => render::json(&level)?,
            };
            Ok((text, exit::OK))
        }
    }
}
