//! What a library has, under all the names by which a writer may cite it.
//!
//! Made once for a text by `check`. An address counts as the same with and without its fragment, a slash at its end
//! and the `s` of https; nothing else is guessed.

use std::collections::{HashMap, HashSet};

use super::find::{Kind, arxiv, doi};
use super::shadow::Shadow;
use crate::research::source::Library;

pub(super) struct Known {
    ids: HashMap<String, usize>,
    urls: HashMap<String, usize>,
    hosts: HashSet<String>,
    dois: HashMap<String, usize>,
    arxiv: HashMap<String, usize>,
}

impl Known {
    pub(super) fn new(library: &Library) -> Known {
        let mut known = Known {
            ids: HashMap::new(),
            urls: HashMap::new(),
            hosts: HashSet::new(),
            dois: HashMap::new(),
            arxiv: HashMap::new(),
        };
        for (place, source) in library.iter().enumerate() {
            known.ids.entry(source.id.clone()).or_insert(place);
            known.urls.entry(key(&source.url)).or_insert(place);
            let after_scheme = source.url.split_once("://").map_or("", |(_, rest)| rest);
            let host = after_scheme
                .split(['/', '?', '#', ':'])
                .next()
                .unwrap_or_default();
            known
                .hosts
                .insert(host.trim_start_matches("www.").to_ascii_lowercase());
            let shadow = Shadow::new(&source.url);
            for at in 0..shadow.chars.len() {
                if let Some(Kind::Doi(id)) = doi(&shadow, at).map(|found| found.kind) {
                    known.dois.entry(id).or_insert(place);
                }
                if let Some(Kind::Arxiv(id)) = arxiv(&shadow, at).map(|found| found.kind) {
                    known.arxiv.entry(id).or_insert(place);
                }
            }
        }
        known
    }

    /// The place of the source with an id.
    pub(super) fn id(&self, id: &str) -> Option<usize> {
        self.ids.get(id).copied()
    }

    /// The place of the source that something leads to; `written` is how the text has it.
    pub(super) fn leads_to(&self, kind: &Kind, written: &str) -> Option<usize> {
        match kind {
            Kind::Url => self.urls.get(&key(written)).copied(),
            Kind::Doi(id) => self.dois.get(id).copied(),
            Kind::Arxiv(id) => self.arxiv.get(id).copied(),
            Kind::Ids(_) | Kind::Number | Kind::Domain(_) => None,
        }
    }

    /// Whether something was fetched from a host.
    pub(super) fn has_host(&self, host: &str) -> bool {
        self.hosts.contains(host.trim_start_matches("www."))
    }
}

/// How addresses are compared.
fn key(url: &str) -> String {
    let url: String = url.chars().filter(|c| *c != '\\').collect();
    let url = url.split('#').next().unwrap_or_default();
    let url = url.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '_', '*', '/']);
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            let scheme = scheme.to_ascii_lowercase();
            let scheme = if scheme == "https" { "http" } else { &scheme };
            format!("{scheme}://{}{path}", host.to_ascii_lowercase())
        }
        None => url.to_owned(),
    }
}
