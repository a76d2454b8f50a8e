//! The fallback response of a pool.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exchange::{PoolId, Slice};

use crate::error::BuildError;
use engine::balance::FallbackConfig;
use flow::page::Page;

pub(super) fn answer(
    pool: &str,
    answer: settings::FallbackAnswer,
    http: settings::FallbackHttp,
    places: &BTreeMap<String, PoolId>,
) -> Result<FallbackConfig, BuildError> {
    let page = |body, ending: &str, location: Option<&str>| {
        FallbackConfig::Page(Arc::new(page(&http, body, ending, location)))
    };
    match answer {
        settings::FallbackAnswer::Line(line) => Ok(page(Slice::from(line.as_str()), "", None)),
        settings::FallbackAnswer::Redirect(to) => Ok(page(Slice::default(), "", Some(&to))),
        settings::FallbackAnswer::Pool(name) => {
            places.get(&name).copied().map(FallbackConfig::Pool).ok_or(BuildError::NoPool(name))
        }
        settings::FallbackAnswer::File(path) => {
            let bytes = read(pool, &path)?;
            let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
            Ok(page(Slice::from(body), ending, None))
        }
    }
}

/// Returns the content of the file of a fallback response.
pub(super) fn read(pool: &str, path: &str) -> Result<Vec<u8>, BuildError> {
    let read = paths::read(Path::new(path)).map(|(bytes, _)| bytes);
    read.map_err(|error| BuildError::Fallback {
        pool: pool.to_owned(),
        why: format!("its answer `{path}` cannot be read: {error}"),
    })
}

fn page(http: &settings::FallbackHttp, body: Slice, ending: &str, location: Option<&str>) -> Page {
    let settings::FallbackHttp { status, content_type, retry_after } = http;
    let by_ending = match ending {
        "html" | "htm" => "text/html; charset=utf-8",
        "json" => "application/json",
        _ => "text/plain; charset=utf-8",
    };
    // The response is valid only at this moment.
    let mut lines = String::from("Cache-Control: no-store\r\n");
    if let Some(to) = location {
        lines.push_str(&format!("Location: {to}\r\n"));
    }
    let seconds = retry_after.saturating_add(Duration::from_millis(999)).as_secs();
    if seconds > 0 {
        lines.push_str(&format!("Retry-After: {seconds}\r\n"));
    }
    let status = status.unwrap_or(if location.is_some() { 302 } else { 503 });
    let content_type = content_type.clone().unwrap_or_else(|| by_ending.to_owned());
    Page::new(status, content_type, lines.into_bytes(), body)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn an_answer_that_another_user_can_have_led_elsewhere_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("page.html"), folder.path().join("link"));
        std::fs::write(&path, "a page").expect("a file");
        symlink(&path, &link).expect("a link");
        let link = link.to_str().expect("a text");
        assert_eq!(read("web", link).expect("it is read"), b"a page");
        set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("a mode");
        let error = read("web", link).expect_err("another user can change it").to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }
}
