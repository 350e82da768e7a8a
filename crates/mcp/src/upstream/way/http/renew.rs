//! Opening a session again that the server has forgotten, with the client's own opening messages.

use bytes::Bytes;
use gate::ControlKind;
use wire::jsonrpc::{Envelope, Kind, member, string};
use wire::{Bounds, scan_reply};

use super::open::{Events, failure_of, send};
use super::outline::Outline;
use super::session::{HttpSession, session_id_of};
use crate::message::announced::Announced;
use crate::message::frames::{Failure, UpstreamFault as Fault};
use crate::upstream::{Frame, message_bytes_max, taken};

/// Opens the session again, unless somebody has done so since `generation` was read.
pub(super) async fn renew(session: &HttpSession, generation: u64) -> Result<(), Failure> {
    let _one_at_a_time = session.renewing.lock().await;
    if session.generation() != generation {
        return Ok(());
    }
    let (Some(initialize), initialized) = session.opening_frames() else {
        return Err(Fault::SessionLost.into());
    };
    let outline = Outline::of(&initialize);
    let body = passed(session, &initialize)?;
    let mut reply = send(session, &outline, &body)
        .await
        .map_err(|fault| failure_of(&fault))?;
    if !reply.status().is_success() {
        let status = reply.status().as_u16();
        return Err(Fault::SessionLost.because(format!("status {status}")));
    }
    let id = session_id_of(&reply)
        .map_err(|()| Fault::SessionLost.because("the new session's id is not fit for a header"))?;
    let answer = if is_events(&reply) {
        let mut events = Events::new(session, reply);
        loop {
            match events.next().await? {
                Some(frame) if is_answer(&frame) => break frame,
                Some(_) => {}
                None => return Err(Fault::SessionLost.into()),
            }
        }
    } else {
        let bytes = reply.bytes(message_bytes_max(&session.gate)).await;
        bytes.map_err(|fault| failure_of(&fault))?.to_vec()
    };
    let Some(version) = version_in(&answer) else {
        return Err(Fault::SessionLost.because("it does not open a new one"));
    };
    session.announces(announced_in(&answer));
    session.is_open(id, Some(&version));
    if let Some(initialized) = initialized {
        let body = passed(session, &initialized)?;
        let outline = Outline::of(&initialized);
        let accepted = send(session, &outline, &body).await;
        let mut accepted = accepted.map_err(|fault| failure_of(&fault))?;
        drop(accepted.bytes(super::ERROR_BYTES_MAX).await);
    }
    session.has_opened();
    Ok(())
}

/// The message goes out once more, so the gate counts it once more.
fn passed(session: &HttpSession, frame: &Bytes) -> Result<Bytes, Failure> {
    let frame = Frame::from(frame.to_vec());
    let pass = session
        .gate
        .control(ControlKind::Handshake, session.id(), frame);
    let (frame, ()) = taken(pass, session.id()).ok_or(Fault::SessionLost)?;
    Ok(Bytes::from(frame.bytes))
}

fn is_events(reply: &net::outbound::http::Reply) -> bool {
    let name = net::outbound::http::header::CONTENT_TYPE;
    let value = reply.header(&name).ok().flatten().unwrap_or_default();
    value
        .trim_start()
        .to_ascii_lowercase()
        .starts_with("text/event-stream")
}

fn is_answer(frame: &[u8]) -> bool {
    let bounds = Bounds::default();
    scan_reply(frame, &bounds).is_ok_and(|scan| {
        matches!(
            Envelope::of(&scan).map(|envelope| envelope.kind),
            Ok(Kind::Response { .. })
        )
    })
}

/// What the answer to `initialize` announces.
fn announced_in(answer: &[u8]) -> Announced {
    let scan = scan_reply(answer, &Bounds::default());
    let result = scan.as_ref().ok();
    let result = result.and_then(|scan| member(&scan.members, "result"));
    Announced::of(result.unwrap_or_default())
}

/// The revision that the answer to `initialize` settles on.
fn version_in(answer: &[u8]) -> Option<String> {
    let bounds = Bounds::default();
    let scan = scan_reply(answer, &bounds).ok()?;
    let result = scan_reply(member(&scan.members, "result")?.as_bytes(), &bounds).ok()?;
    Some(string(member(&result.members, "protocolVersion")?)?.into_owned())
}
