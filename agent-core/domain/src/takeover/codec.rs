//! Messages of the hand-over as bytes: four bytes of length, most significant first, then one JSON object with its `type`.
//! Unknown keys are ignored, so that a newer agent may say more; an unknown `type` is skipped.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::HANDOVER_MESSAGE_MAX;

const HEAD: usize = 4;

/// Why bytes are no message. The connection they came over is of no more use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A length beyond the bound, or of nothing.
    #[error(
        "a hand-over message of {length} bytes was announced, and one has 1 to {HANDOVER_MESSAGE_MAX}; closing the connection"
    )]
    Length {
        /// What was announced, or what a message of ours would take.
        length: usize,
    },
    /// Not a JSON object with a type.
    #[error("a hand-over message is no JSON object with a type ({reason}); closing the connection")]
    Garbage {
        /// What the parser says.
        reason: String,
    },
}

/// The bytes of one message.
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, CodecError> {
    let body =
        serde_json::to_vec(message).map_err(|error| CodecError::Garbage { reason: error.to_string() })?;
    let length = body.len();
    let head = u32::try_from(length).ok().filter(|_| length <= HANDOVER_MESSAGE_MAX);
    let head = head.ok_or(CodecError::Length { length })?;
    let mut bytes = Vec::with_capacity(HEAD + length);
    bytes.extend_from_slice(&head.to_be_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// Takes messages out of a stream of bytes. It never holds more than one message and what was pushed last.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether no part of a message is held.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next whole message that is of a known type; `None`: more bytes are needed.
    pub fn take<M: DeserializeOwned>(&mut self) -> Result<Option<M>, CodecError> {
        loop {
            let Some((head, rest)) = self.bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
            let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
            if length == 0 || length > HANDOVER_MESSAGE_MAX {
                return Err(CodecError::Length { length });
            }
            let Some(body) = rest.get(..length) else { return Ok(None) };
            let message = parse(body)?;
            self.bytes.drain(..HEAD + length);
            if message.is_some() {
                return Ok(message);
            }
        }
    }
}

/// One message; `None`: of a type that this version does not know.
fn parse<M: DeserializeOwned>(body: &[u8]) -> Result<Option<M>, CodecError> {
    let garbage = |error: serde_json::Error| CodecError::Garbage { reason: error.to_string() };
    match serde_json::from_slice::<M>(body) {
        Ok(message) => Ok(Some(message)),
        Err(error) => {
            let kind: Kind = serde_json::from_slice(body).map_err(garbage)?;
            if KNOWN.contains(&kind.r#type.as_str()) { Err(garbage(error)) } else { Ok(None) }
        }
    }
}

#[derive(serde::Deserialize)]
struct Kind {
    r#type: String,
}

/// Every type that this version knows, of both directions.
const KNOWN: [&str; 10] = [
    "hello",
    "complete",
    "incomplete",
    "ready",
    "locked",
    "greeting",
    "chosen",
    "notChosen",
    "leaving",
    "yours",
];

#[cfg(test)]
mod tests;
