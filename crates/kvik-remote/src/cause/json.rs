//! The remote exception of WebHDFS.

use serde::Deserialize;

use super::Said;

#[derive(Deserialize)]
struct Reply {
    #[serde(rename = "RemoteException")]
    exception: Exception,
}

#[derive(Deserialize)]
struct Exception {
    exception: Option<String>,
    message: Option<String>,
}

pub(super) fn read(body: &[u8]) -> Option<Said> {
    let reply: Reply = serde_json::from_slice(body).ok()?;
    let Exception { exception, message } = reply.exception;
    // Behind the first line comes the trace of the server's stack.
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    Some(Said {
        code: exception,
        message: message.map(first),
        ..Said::default()
    })
}
