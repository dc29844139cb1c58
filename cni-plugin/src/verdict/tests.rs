use super::*;

fn refused(code: Code) -> Trouble {
    Trouble::Refused { code, message: "because".into() }
}

fn call() -> Call<'static> {
    Call { socket: Path::new("/run/aether/cni.sock"), waited: Duration::from_millis(5012) }
}

const CODES: [Code; 16] = [
    Code::Cancelled,
    Code::Unknown,
    Code::InvalidArgument,
    Code::DeadlineExceeded,
    Code::NotFound,
    Code::AlreadyExists,
    Code::PermissionDenied,
    Code::ResourceExhausted,
    Code::FailedPrecondition,
    Code::Aborted,
    Code::OutOfRange,
    Code::Unimplemented,
    Code::Internal,
    Code::Unavailable,
    Code::DataLoss,
    Code::Unauthenticated,
];

fn troubles() -> Vec<Trouble> {
    let mut all = vec![
        Trouble::Away("Connection refused".into()),
        Trouble::Foreign(1000),
        Trouble::Lost("reset".into()),
        Trouble::TimedOut,
    ];
    all.extend(CODES.map(refused));
    all
}

#[test]
fn k04_an_add_waits_for_an_agent_that_may_come() {
    for trouble in [Trouble::Away("x".into()), Trouble::Lost("x".into()), refused(Code::Unavailable)] {
        assert_eq!(trouble.passes(), Again::Yes, "{trouble}");
    }
    for code in
        [Code::ResourceExhausted, Code::FailedPrecondition, Code::InvalidArgument, Code::PermissionDenied]
    {
        assert_eq!(refused(code).passes(), Again::No, "{code:?}");
    }
    assert_eq!(refused(Code::Internal).passes(), Again::No);
}

#[test]
fn k04_a_failed_add_names_the_socket_the_wait_and_the_reason() {
    for trouble in [Trouble::Away("Connection refused".into()), Trouble::TimedOut, refused(Code::Unavailable)]
    {
        let failure = add(call(), &trouble);
        assert_eq!(failure.code, code::TRY_AGAIN);
        assert!(failure.details.contains("/run/aether/cni.sock after 5.0 s"), "{failure}");
        assert!(failure.details.contains(&trouble.to_string()), "{failure}");
    }
}

#[test]
fn k16_each_refusal_of_an_add_has_its_code() {
    for (status, expected) in [
        (Code::ResourceExhausted, code::TRY_AGAIN),
        (Code::InvalidArgument, code::INVALID_CONFIG),
        (Code::PermissionDenied, code::POLICY_DENIED),
        (Code::FailedPrecondition, code::AGENT_REFUSED),
        (Code::Internal, code::AGENT_REFUSED),
        (Code::Unimplemented, code::AGENT_REFUSED),
    ] {
        let failure = add(call(), &refused(status));
        assert_eq!(failure.code, expected, "{status:?}");
        assert!(failure.details.contains("because"), "{failure}");
    }
}

#[test]
fn k07_nothing_is_left_only_where_nobody_listens_and_no_record_stands() {
    for trouble in troubles() {
        assert_eq!(del(&trouble, Record::Possible), Left::Tombstone, "{trouble}");
        let nobody = matches!(trouble, Trouble::Away(_) | Trouble::Foreign(_));
        let expected = if nobody { Left::Nothing } else { Left::Tombstone };
        assert_eq!(del(&trouble, Record::Absent), expected, "{trouble}");
    }
}

#[test]
fn k09_a_check_says_what_the_agent_knows() {
    for (known, expected) in [
        (Known::Managed, Ok("as-recorded")),
        (Known::Unmanaged, Ok("unmanaged")),
        (Known::BeforeInstall, Ok("before-install")),
        (Known::Missing, Err(code::CHECK_FAILED)),
        (Known::Unspecified, Err(code::CHECK_FAILED)),
    ] {
        let answer = check(call(), Ok(CheckResponse { known: known.into() }));
        assert_eq!(answer.map_err(|failure| failure.code), expected, "{known:?}");
    }
    for trouble in troubles() {
        let answer = check(call(), Err(trouble.clone())).map_err(|failure| failure.code);
        match &trouble {
            Trouble::Refused { code: Code::Unimplemented, .. } => {
                assert_eq!(answer, Ok("agent-cannot-check"));
            }
            Trouble::Refused { .. } if trouble.passes() == Again::No => assert!(answer.is_err(), "{trouble}"),
            _ => assert_eq!(answer, Err(code::TRY_AGAIN), "{trouble}"),
        }
    }
}

#[test]
fn k11_a_gc_without_an_agent_succeeds() {
    for trouble in
        [Trouble::Away("x".into()), Trouble::TimedOut, Trouble::Lost("x".into()), refused(Code::Unavailable)]
    {
        assert_eq!(gc(call(), &trouble), Ok("agent-away"), "{trouble}");
    }
    assert_eq!(gc(call(), &refused(Code::Internal)).unwrap_err().code, code::AGENT_REFUSED);
}

#[test]
fn k10_k15_a_status_is_code_50_but_for_an_agent_that_does_not_know_the_call() {
    for trouble in troubles() {
        match status(call(), &trouble) {
            Ok(_) => assert_eq!(trouble, refused(Code::Unimplemented)),
            Err(failure) => assert_eq!(failure.code, 50, "{trouble}"),
        }
    }
    assert_eq!(status(call(), &refused(Code::Unimplemented)), Ok("agent-cannot-say"));
    assert_eq!(gc(call(), &refused(Code::Unimplemented)), Ok("agent-cannot-gc"));
}
