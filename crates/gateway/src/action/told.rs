//! What the audit is told of an action: ids, digests and states in the chain, people and their reasons beside it.

use super::{ActionRow, Person, Signer};
use crate::audit::{Draft, Event, EventKind, Field};
use crate::policy::Fit;
use crate::record::Ruling;
use crate::redact::Redactor;
use std::collections::BTreeMap;

impl ActionRow {
    /// That this action has come to where it stands now.
    pub(crate) fn told(&self, kind: EventKind, at_ms: u64) -> Draft {
        self.told_reply(kind, "", at_ms)
    }

    /// That this action was proposed, with the rule by which it was, and the grant that signed it. What it says of
    /// itself goes through the redactor; its exact bytes stand in the action alone.
    pub(crate) fn proposed_by(
        &self,
        ruling: Option<&Ruling>,
        redactor: &Redactor,
        at_ms: u64,
    ) -> Draft {
        let mut event = self.event(EventKind::Proposed, at_ms);
        let named = |ruling: &Ruling| {
            [
                ("rule", ruling.rule.clone()),
                ("grant", ruling.grant.clone()),
            ]
        };
        for (name, value) in ruling.map(named).into_iter().flatten() {
            if let Some(value) = value {
                event = event.with(name, value);
            }
        }
        let said = &self.action.said;
        let mut detail = self.personal(EventKind::Proposed);
        for (name, text) in [
            ("requester", said.requester.clone()),
            ("says", redactor.said(&said.says)),
            ("subject", redactor.said(&said.subject)),
        ] {
            put(&mut detail, name, &text);
        }
        drafted(event, detail)
    }

    /// The same with what the effect gave back, without secrets.
    pub(crate) fn told_reply(&self, kind: EventKind, reply: &str, at_ms: u64) -> Draft {
        self.written(kind, reply, self.event(kind, at_ms))
    }

    fn event(&self, kind: EventKind, at_ms: u64) -> Event {
        let said = &self.action.said;
        let event = Event {
            state: Some(self.state.name().to_owned()),
            expires_ms: Some(said.expires_ms),
            ..self.about(kind, at_ms)
        };
        let mut event = event
            .with("version", self.version)
            .with("votes", self.votes.len() as u64);
        if self.sending.times > 0 {
            event = event.with("sent", self.sending.times);
        }
        if !said.policy.is_empty() {
            event = event.with("policy", said.policy.as_str());
        }
        if let Some(new) = self.replaced_by {
            event = event.with("replaced_by", new.to_string());
        }
        event
    }

    fn written(&self, kind: EventKind, reply: &str, event: Event) -> Draft {
        let mut detail = self.personal(kind);
        if !reply.is_empty() {
            detail.insert("reply".to_owned(), Field::from(reply));
        }
        drafted(event, detail)
    }

    /// That it was shown to somebody. Neither its state nor its version is told: it may be somewhere else by now.
    pub(crate) fn told_shown(&self, (to, program): (&Person, &str), at_ms: u64) -> Draft {
        let to = Signer::Person(to.clone()).named();
        let event = self.about(EventKind::Shown, at_ms);
        let event = event.with("program", program);
        event.draft_with([("to".to_owned(), Field::from(to))].into())
    }

    /// What the grant that signed it has less by that.
    pub(crate) fn told_granted(&self, fit: &Fit<'_>) -> Vec<Draft> {
        let said = &self.action.said;
        let taken = fit.takes.iter().map(|take| {
            let event = self.about(EventKind::Budget, said.created_ms);
            let event = event.with("grant", fit.grant);
            let event = event.with("counter", take.counter.as_str());
            event.with("by", take.by).with("most", take.max).draft()
        });
        taken.collect()
    }

    /// Something about this action, which says neither its state nor its version.
    fn about(&self, kind: EventKind, at_ms: u64) -> Event {
        let said = &self.action.said;
        Event {
            action: Some(self.id().to_string()),
            digest: Some(self.digest.clone()),
            tool: Some(said.tool.clone()),
            level: Some(said.level.to_string()),
            ..Event::of_run(kind, &said.run, at_ms)
        }
    }

    /// Who did it, and in what words.
    fn personal(&self, kind: EventKind) -> BTreeMap<String, Field> {
        let mut detail = BTreeMap::new();
        let mut put = |name: &str, text: &str| put(&mut detail, name, text);
        let ended = match kind {
            EventKind::Reopened => &self.reopened,
            _ => &self.ended,
        };
        match (ended, self.votes.last()) {
            (Some(ended), _) => {
                put("by", &ended.by.named());
                put("why", &ended.why);
            }
            (None, Some(vote)) => put("by", &vote.by.named()),
            (None, None) => {}
        }
        detail
    }
}

/// Adds a detail that says something.
fn put(detail: &mut BTreeMap<String, Field>, name: &str, text: &str) {
    if !text.is_empty() {
        detail.insert(name.to_owned(), Field::from(text));
    }
}

fn drafted(event: Event, detail: BTreeMap<String, Field>) -> Draft {
    match detail.is_empty() {
        true => event.draft(),
        false => event.draft_with(detail),
    }
}

impl Signer {
    /// As details of the audit have it.
    pub(crate) fn named(&self) -> String {
        match self {
            Signer::Person(person) if person.verified => format!("person:{}", person.id),
            Signer::Person(person) => format!("person:{} (unverified)", person.id),
            Signer::Rule(name) => format!("rule:{name}"),
            Signer::Clock => "clock".to_owned(),
            Signer::Gateway => "gateway".to_owned(),
        }
    }
}
