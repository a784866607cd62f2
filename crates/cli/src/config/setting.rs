//! Which settings there are: their keys, variables and defaults. `config show` lists exactly these.

use paraph_models::{RetryPolicy, Settings, ToolMode, providers};
use paraph_store::Options;
use paraph_tools::GITHUB_API_URL;

/// How a setting's value is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Shown as it is.
    Plain,
    /// May be shown, but may contain a password.
    Address,
    /// Never shown, never in a configuration file, and also read from a file that `NAME_FILE` names.
    Secret,
}

/// One setting.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Its key in `paraph.toml`, with dots between tables.
    pub(crate) key: String,
    /// The variables that hold it, the first one first.
    pub(crate) variables: Vec<String>,
    pub(crate) kind: Kind,
    pub(crate) default: Option<String>,
}

impl Setting {
    fn new(key: impl Into<String>, variables: &[&str]) -> Setting {
        Setting {
            key: key.into(),
            variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            kind: Kind::Plain,
            default: None,
        }
    }

    fn kind(self, kind: Kind) -> Setting {
        Setting { kind, ..self }
    }

    fn default(self, text: impl Into<String>) -> Setting {
        Setting {
            default: Some(text.into()),
            ..self
        }
    }
}

/// All settings, in the order in which they are listed.
pub(crate) fn settings() -> Vec<Setting> {
    let retry = RetryPolicy::default();
    let timeout = retry.timeout.as_secs().to_string();
    let idle = retry.idle.unwrap_or(retry.timeout).as_secs().to_string();
    let connect = Settings::default().connect_timeout.as_secs().to_string();
    let mut all = vec![
        Setting::new("model", &["PARAPH_MODEL"]).kind(Kind::Address),
        Setting::new("store", &["PARAPH_STORE"]).kind(Kind::Address),
        Setting::new("encryption_key", &["PARAPH_ENCRYPTION_KEY"]).kind(Kind::Secret),
        Setting::new("lease_seconds", &["PARAPH_LEASE_SECONDS"])
            .default(Options::default().lease.as_secs().to_string()),
        Setting::new("low_disk_mib", &["PARAPH_LOW_DISK_MIB"])
            .default(crate::stores::LOW_DISK_MIB.to_string()),
        Setting::new("retention.keep_last", &[]),
        Setting::new("retention.older_than", &[]),
        Setting::new("approvals.hook", &["PARAPH_APPROVALS_HOOK"]),
        Setting::new("seal_key", &["PARAPH_SEAL_KEY"]).kind(Kind::Secret),
        Setting::new("seal_key_old", &["PARAPH_SEAL_KEY_OLD"]).kind(Kind::Secret),
        Setting::new("audit.anchor", &["PARAPH_AUDIT_ANCHOR"]).kind(Kind::Address),
        Setting::new("audit.anchor_every", &["PARAPH_AUDIT_ANCHOR_EVERY"]).default("100"),
        Setting::new("audit.anchor_token", &["PARAPH_AUDIT_ANCHOR_TOKEN"]).kind(Kind::Secret),
        Setting::new("loop", &["PARAPH_LOOP"]).default("exact"),
        Setting::new("max_steps", &["PARAPH_MAX_STEPS"]),
        Setting::new("max_tool_calls", &["PARAPH_MAX_TOOL_CALLS"]),
        Setting::new("max_seconds", &["PARAPH_MAX_SECONDS"]),
        Setting::new("max_tokens", &["PARAPH_MAX_TOKENS"]),
        Setting::new("max_cost", &["PARAPH_MAX_COST"]),
        Setting::new("per_user_day.max_tool_calls", &[]),
        Setting::new("per_user_day.max_tokens", &[]),
        Setting::new("per_user_day.max_cost", &[]),
        Setting::new("fallback", &["PARAPH_FALLBACK"]).kind(Kind::Address),
        Setting::new("tool_mode", &["PARAPH_TOOL_MODE"]).default(ToolMode::default().to_string()),
        Setting::new("model_timeout_seconds", &["OPENAI_TIMEOUT_SECONDS"]).default(timeout),
        Setting::new("model_connect_seconds", &[]).default(connect),
        Setting::new("model_first_token_seconds", &[]),
        Setting::new("model_idle_seconds", &[]).default(idle),
        Setting::new("log", &["PARAPH_LOG"]).default("off"),
        Setting::new("data_dir", &["PARAPH_DATA_DIR"]),
        Setting::new("tavily.api_key", &["TAVILY_API_KEY"]).kind(Kind::Secret),
        Setting::new("tavily.base_url", &["TAVILY_BASE_URL"]).kind(Kind::Address),
        Setting::new("open_meteo.base_url", &["OPEN_METEO_BASE_URL"]).kind(Kind::Address),
        Setting::new("open_meteo.geocoding_url", &["OPEN_METEO_GEOCODING_URL"]).kind(Kind::Address),
        Setting::new("github.token", &["GITHUB_TOKEN"]).kind(Kind::Secret),
        Setting::new("github.api_url", &["GITHUB_API_URL"])
            .kind(Kind::Address)
            .default(GITHUB_API_URL),
        Setting::new("github.client_id", &["GITHUB_CLIENT_ID"]),
        Setting::new("corpus.embedder", &["PARAPH_CORPUS_EMBEDDER"]).kind(Kind::Address),
        Setting::new("corpus.repos", &["PARAPH_CORPUS_REPOS"]),
        Setting::new("refund.base_url", &["REFUND_BASE_URL"]).kind(Kind::Address),
        Setting::new("refund.token", &["REFUND_TOKEN"]).kind(Kind::Secret),
        Setting::new("refund.ledger", &["REFUND_LEDGER"]),
        Setting::new("triage.sparse_below", &[]).default("40"),
        Setting::new("triage.snippets", &[]).default("3"),
        Setting::new("triage.per_user_day", &[]).default("30"),
        Setting::new("triage.needs_triage_label", &[]).default("needs-triage"),
        Setting::new("triage.severity_prefix", &[]).default("severity:"),
        Setting::new("ca_file", &["PARAPH_CA_FILE", "SSL_CERT_FILE"]),
        Setting::new("https_proxy", &["HTTPS_PROXY", "https_proxy"]).kind(Kind::Address),
        Setting::new("http_proxy", &["HTTP_PROXY", "http_proxy"]).kind(Kind::Address),
        Setting::new("no_proxy", &["NO_PROXY", "no_proxy"]),
    ];
    for provider in providers() {
        let key = |word: &str| format!("providers.{}.{word}", provider.name);
        let model: &[&str] = match provider.name {
            "openai" => &["OPENAI_MODEL"],
            _ => &[],
        };
        all.push(Setting::new(key("api_key"), provider.key_variables).kind(Kind::Secret));
        all.push(Setting::new(key("base_url"), provider.base_url_variables).kind(Kind::Address));
        all.push(Setting::new(key("model"), model).kind(Kind::Address));
        all.push(Setting::new(key("max_in_flight"), &[]));
        all.push(Setting::new(key("requests_per_minute"), &[]));
        all.push(Setting::new(key("tokens_per_minute"), &[]));
    }
    all
}
