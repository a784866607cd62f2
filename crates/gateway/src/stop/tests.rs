//! The list of stop reasons against the contract, and its words.

use super::*;

#[test]
fn every_reason_reads_back_as_itself() {
    for stop in Stop::all() {
        let read: Stop = stop.to_string().parse().unwrap();
        assert_eq!(read.to_string(), stop.to_string());
        assert_eq!(std::mem::discriminant(&read), std::mem::discriminant(&stop));
        let json = serde_json::to_string(&stop).unwrap();
        assert_eq!(serde_json::from_str::<Stop>(&json).unwrap(), read);
    }
}

#[test]
fn a_reason_names_the_tool_it_was_about() {
    let denied = Failure::Denied {
        tool: "rm".into(),
        why: String::new(),
    };
    assert_eq!("tool_denied:rm".parse(), Ok(Stop::Failed(denied)));
}

#[test]
fn the_list_is_the_contract() {
    let reasons: Vec<_> = Stop::all().iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons.join(" "),
        "success max_steps max_tool_calls max_seconds max_tokens max_cost max_children \
         loop_detected no_progress \
         tool_denied:TOOL tool_missing:TOOL tool_bad_args:TOOL tool_error:TOOL tool_timeout:TOOL \
         invalid_action:not_object invalid_action:bad_json invalid_action:bad_kind \
         invalid_action:extra_keys invalid_action:missing_answer \
         invalid_action:missing_tool_name invalid_action:bad_args \
         llm_timeout llm_empty llm_error:auth llm_error:rate_limited llm_error:bad_request \
         llm_error:context_overflow llm_error:server llm_error:connection llm_error:decode \
         llm_error:script_exhausted \
         approval_pending approval_rejected approval_expired drifted \
         killed_global killed_tenant writes_disabled tool_disabled:TOOL \
         escalated:CHECKS handed_off cancelled conflict store_error internal"
    );
}

#[test]
fn names_after_the_colon_may_be_any_text() {
    for reason in [
        "tool_denied:a:b",
        "tool_missing: ",
        "tool_error:",
        "escalated:risk,grounds",
    ] {
        assert_eq!(reason.parse::<Stop>().unwrap().to_string(), reason);
    }
    for reason in [
        "",
        "tool_denied",
        "max_steps:x",
        "invalid_action:nope",
        "Success",
    ] {
        assert_eq!(
            reason.parse::<Stop>().unwrap_err().to_string(),
            format!("`{reason}` is no stop reason")
        );
    }
}

#[test]
fn exit_codes_and_status_follow_the_contract() {
    let of = |reason: &str| {
        let stop: Stop = reason.parse().unwrap();
        (stop.exit_code(), stop.status())
    };
    let table = [
        ("success", 0, Status::Ok),
        ("handed_off", 0, Status::Ok),
        ("escalated:risk", 0, Status::Ok),
        ("max_seconds", 3, Status::Stopped),
        ("loop_detected", 3, Status::Stopped),
        ("tool_denied:rm", 3, Status::Stopped),
        ("invalid_action:bad_kind", 3, Status::Stopped),
        ("approval_rejected", 3, Status::Stopped),
        ("killed_global", 3, Status::Stopped),
        ("llm_timeout", 4, Status::Stopped),
        ("llm_error:server", 4, Status::Stopped),
        ("approval_pending", 5, Status::Waiting),
        ("conflict", 6, Status::Stopped),
        ("store_error", 6, Status::Stopped),
        ("internal", 6, Status::Stopped),
        ("cancelled", 130, Status::Stopped),
    ];
    for (reason, code, status) in table {
        assert_eq!(of(reason), (code, status), "{reason}");
    }
}

#[test]
fn every_reason_has_words_of_its_own() {
    let all: Vec<_> = Stop::all().iter().map(Stop::explain).collect();
    for (i, one) in all.iter().enumerate() {
        assert!(
            one.happened.ends_with('.') && one.remedy.ends_with('.'),
            "{one:?}"
        );
        for other in &all[i + 1..] {
            assert_ne!(one.happened, other.happened);
        }
    }
}
