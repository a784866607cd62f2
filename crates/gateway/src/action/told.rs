//! What the audit is told of an action: ids, digests and states in the chain, people and their reasons beside it.

use super::{ActionRow, Signer};
use crate::audit::{Draft, Event, EventKind, Field};
use crate::record::Ruling;
use std::collections::BTreeMap;

impl ActionRow {
    /// That this action has come to where it stands now.
    pub(crate) fn told(&self, kind: EventKind, at_ms: u64) -> Draft {
        self.written(kind, self.event(kind, at_ms))
    }

    /// That this action was proposed, with the rule by which it was, and the grant that signed it.
    pub(crate) fn proposed_by(&self, ruling: Option<&Ruling>, at_ms: u64) -> Draft {
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
        self.written(EventKind::Proposed, event)
    }

    fn event(&self, kind: EventKind, at_ms: u64) -> Event {
        let said = &self.action.said;
        let event = Event {
            action: Some(self.id().to_string()),
            digest: Some(self.digest.clone()),
            state: Some(self.state.name().to_owned()),
            tool: Some(said.tool.clone()),
            level: Some(said.level.to_string()),
            expires_ms: Some(said.expires_ms),
            ..Event::of_run(kind, &said.run, at_ms)
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

    fn written(&self, kind: EventKind, event: Event) -> Draft {
        let detail = self.personal(kind);
        match detail.is_empty() {
            true => event.draft(),
            false => event.draft_with(detail),
        }
    }

    /// Who did it, and in what words.
    fn personal(&self, kind: EventKind) -> BTreeMap<String, Field> {
        let said = &self.action.said;
        let mut detail = BTreeMap::new();
        let mut put = |name: &str, text: &str| {
            if !text.is_empty() {
                detail.insert(name.to_owned(), Field::from(text));
            }
        };
        if kind == EventKind::Proposed {
            put("requester", &said.requester);
            put("says", &said.says);
            put("subject", &said.subject);
        }
        let ended = match kind {
            EventKind::Reopened => &self.reopened,
            _ => &self.ended,
        };
        match (ended, self.votes.last()) {
            (Some(ended), _) => {
                put("by", &named(&ended.by));
                put("why", &ended.why);
            }
            (None, Some(vote)) => put("by", &named(&vote.by)),
            (None, None) => {}
        }
        detail
    }
}

fn named(signer: &Signer) -> String {
    match signer {
        Signer::Person(person) if person.verified => format!("person:{}", person.id),
        Signer::Person(person) => format!("person:{} (unverified)", person.id),
        Signer::Rule(name) => format!("rule:{name}"),
        Signer::Clock => "clock".to_owned(),
        Signer::Kill(scope) => format!("kill:{scope}"),
        Signer::Gateway => "gateway".to_owned(),
    }
}
