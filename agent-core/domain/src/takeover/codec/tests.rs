use proptest::prelude::*;

use super::*;
use crate::takeover::message::{Greeting, Hello, Listener, NAME_MAX, Role, ToOwner, ToStandby};
use crate::takeover::{Identity, Socket};

fn to_owner() -> impl Strategy<Value = ToOwner> {
    let role = prop_oneof![Just(Role::Standby), Just(Role::Heir)];
    let hello = (any::<u32>(), any::<u32>(), ".{0,63}", any::<u64>(), role)
        .prop_map(|(version, oldest, name, started, role)| Hello { version, oldest, name, started, role });
    prop_oneof![
        hello.prop_map(ToOwner::Hello),
        Just(ToOwner::Complete),
        Just(ToOwner::Incomplete),
        Just(ToOwner::Ready),
        Just(ToOwner::Locked),
    ]
}

fn to_standby() -> impl Strategy<Value = ToStandby> {
    let socket = prop_oneof![Just(Socket::Cni), Just(Socket::Handover), Just(Socket::Xds)];
    let listener = (socket, any::<u64>(), any::<u64>())
        .prop_map(|(socket, dev, ino)| Listener { socket, identity: Identity { dev, ino } });
    let greeting = (any::<u32>(), ".{0,63}", proptest::collection::vec(listener, 0..4))
        .prop_map(|(version, name, listeners)| Greeting { version, name, listeners });
    prop_oneof![
        greeting.prop_map(ToStandby::Greeting),
        Just(ToStandby::Chosen),
        Just(ToStandby::NotChosen),
        Just(ToStandby::Leaving),
        Just(ToStandby::Yours),
    ]
}

/// Takes every message out of `bytes`, pushed in pieces of `piece` bytes.
fn decode<M: DeserializeOwned>(bytes: &[u8], piece: usize) -> Result<Vec<M>, CodecError> {
    let mut decoder = Decoder::default();
    let mut messages = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.push(piece);
        while let Some(message) = decoder.take()? {
            messages.push(message);
        }
        assert!(decoder.bytes.len() <= HEAD + HANDOVER_MESSAGE_MAX);
    }
    Ok(messages)
}

proptest! {
    #[test]
    fn t13_messages_survive_the_way_in_whatever_pieces(
        owner in proptest::collection::vec(to_owner(), 0..5),
        standby in proptest::collection::vec(to_standby(), 0..5),
        piece in 1_usize..200,
    ) {
        let bytes: Vec<u8> = owner.iter().flat_map(|message| encode(message).unwrap()).collect();
        prop_assert_eq!(decode::<ToOwner>(&bytes, piece).unwrap(), owner);
        let bytes: Vec<u8> = standby.iter().flat_map(|message| encode(message).unwrap()).collect();
        prop_assert_eq!(decode::<ToStandby>(&bytes, piece).unwrap(), standby);
    }

    #[test]
    fn t13_garbage_is_refused_or_waited_for_and_never_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        message in to_owner(),
        flip in any::<(proptest::sample::Index, u8)>(),
    ) {
        let _ = decode::<ToOwner>(&bytes, 7);
        let mut bent = encode(&message).unwrap();
        let at = flip.0.index(bent.len());
        bent[at] ^= flip.1;
        let _ = decode::<ToOwner>(&bent, 7);
    }
}

#[test]
fn t13_an_unknown_type_is_skipped_and_an_unknown_key_ignored() {
    let mut bytes = encode(&serde_json::json!({"type": "tomorrow", "why": [1, 2]})).unwrap();
    bytes.extend(encode(&serde_json::json!({"type": "complete", "gates": 7})).unwrap());
    assert_eq!(decode::<ToOwner>(&bytes, 3).unwrap(), [ToOwner::Complete]);
}

#[test]
fn t13_a_known_type_with_wrong_content_and_an_unbounded_length_are_refused() {
    let wrong = encode(&serde_json::json!({"type": "hello", "version": "one"})).unwrap();
    assert!(matches!(decode::<ToOwner>(&wrong, 64), Err(CodecError::Garbage { .. })));
    for length in [0_u32, u32::MAX, 4097] {
        let error = decode::<ToOwner>(&length.to_be_bytes(), 4).unwrap_err();
        assert_eq!(error, CodecError::Length { length: length as usize });
    }
    let long = Hello { version: 1, oldest: 1, name: "x".repeat(5000), started: 1, role: Role::Heir };
    assert!(matches!(encode(&ToOwner::Hello(long)), Err(CodecError::Length { .. })));
    let most = Hello { version: 1, oldest: 1, name: "\u{1}".repeat(NAME_MAX), started: 1, role: Role::Heir };
    assert!(encode(&ToOwner::Hello(most)).is_ok());
}
