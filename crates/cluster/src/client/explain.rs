//! Errors of NATS servers as sentences for operators: what failed, why, and what to do.

use std::error::Error as _;
use std::path::Path;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind};
use async_nats::{ConnectError, ConnectErrorKind, ServerError};

use super::config::ClusterConfig;

/// No server could be connected to.
pub(super) fn connect(config: &ClusterConfig, error: &ConnectError) -> String {
    let servers = config.servers.join(", ");
    let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let (reason, advice) = match (error.kind(), config.credentials.as_deref()) {
        (ConnectErrorKind::AuthorizationViolation, None) => (
            "the server rejects the connection (authorization violation)".to_owned(),
            "set `credentials` of `[cluster]` to the credentials file of a user of the NATS servers"
                .to_owned(),
        ),
        (ConnectErrorKind::AuthorizationViolation, Some(path)) => (
            "the server rejects the user (authorization violation)".to_owned(),
            format!(
                "check that the user in {} belongs to an account of these NATS servers, and is neither expired nor \
                 revoked",
                path.display()
            ),
        ),
        (ConnectErrorKind::Authentication, Some(path)) => {
            (reason, format!("check that {} is a complete credentials file", path.display()))
        }
        (ConnectErrorKind::Tls, _) => (
            reason,
            "check `tls_ca`, `tls_certificate` and `tls_key` of `[cluster]`, and the certificate of the NATS server"
                .to_owned(),
        ),
        _ => (
            reason,
            "check that these NATS servers run, and that `nats` of `[cluster]` has their addresses for clients"
                .to_owned(),
        ),
    };
    format!("cannot connect to {servers}: {reason}; {advice}")
}

/// The file `credentials` cannot be used.
pub(super) fn credentials(path: &Path, error: &std::io::Error) -> String {
    format!("`credentials` of `[cluster]`: the file {} cannot be used: {error}", path.display())
}

/// A bucket could not be created.
pub(super) fn create(bucket: &str, error: &CreateStreamError) -> String {
    let without_jetstream =
        [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT];
    let advice = match error.kind() {
        CreateStreamErrorKind::JetStreamUnavailable => {
            "; add `jetstream { … }` to the configuration of the NATS servers"
        }
        CreateStreamErrorKind::JetStream(ref error)
            if without_jetstream.contains(&error.error_code()) =>
        {
            "; enable JetStream for the servers, and for the account of the user"
        }
        CreateStreamErrorKind::JetStream(ref error)
            if error.error_code() == ErrorCode::INSUFFICIENT_RESOURCES
                || error.error_code() == ErrorCode::STORAGE_RESOURCES_EXCEEDED
                || error.error_code() == ErrorCode::MEMORY_RESOURCES_EXCEEDED =>
        {
            "; increase `max_mem` and `max_file` of the NATS servers: docs/cluster.md has their size"
        }
        CreateStreamErrorKind::TimedOut => {
            "; check that most of the NATS servers run and reach each other, and that the user may publish `$JS.API.>`"
        }
        _ => "",
    };
    format!("the bucket `{bucket}` cannot be created: {error}{advice}")
}

/// A server reported an error on a connection.
pub(super) fn server_error(error: &ServerError) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("nats: ").unwrap_or(&text);
    let is_permission = text.to_lowercase().contains("permissions violation");
    let advice = if is_permission {
        "; docs/cluster.md lists the permissions that the user needs"
    } else {
        ""
    };
    format!("the NATS server says: {text}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Secret;

    fn config(credentials: Option<&str>) -> ClusterConfig {
        ClusterConfig {
            servers: vec!["nats://10.0.0.1:4222".to_owned(), "nats://10.0.0.2:4222".to_owned()],
            tls: None,
            credentials: credentials.map(Into::into),
            site: "main".to_owned(),
            machine: "one".to_owned(),
            secret: Secret(1, 2),
            replicas: 1,
        }
    }

    #[test]
    fn an_operator_reads_which_servers_why_and_what_to_do() {
        let refused = std::io::Error::other("Connection refused");
        let refused = ConnectError::with_source(ConnectErrorKind::Io, refused);
        assert_eq!(
            connect(&config(None), &refused),
            "cannot connect to nats://10.0.0.1:4222, nats://10.0.0.2:4222: Connection refused; check that these NATS \
             servers run, and that `nats` of `[cluster]` has their addresses for clients"
        );
        let rejected = ConnectError::new(ConnectErrorKind::AuthorizationViolation);
        let text = connect(&config(None), &rejected);
        assert!(text.contains("; set `credentials` of `[cluster]`"), "{text}");
        let text = connect(&config(Some("/etc/nats.creds")), &rejected);
        assert!(text.contains("the user in /etc/nats.creds"), "{text}");
        let none = CreateStreamError::new(CreateStreamErrorKind::JetStreamUnavailable);
        let text = create("main_web", &none);
        assert!(text.contains("`main_web`") && text.contains("jetstream { … }"), "{text}");
        let denied = "Permissions Violation for Publish to \"$JS.API.INFO\"".to_owned();
        let text = server_error(&ServerError::Other(denied));
        assert!(text.starts_with("the NATS server says: Permissions"), "{text}");
        assert!(text.contains("docs/cluster.md"), "{text}");
    }
}
