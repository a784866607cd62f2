//! A text in words, brought to a common form: lower case, without English endings.
//!
//! Called for documents and queries alike. The form is for comparing only, nobody reads it, so endings are taken off
//! without asking whether the rest is a word.

/// Words of English that say nothing of what is looked for.
const EMPTY_WORDS: [&str; 73] = [
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "each", "for", "from", "had", "has", "have", "how", "i", "if", "in",
    "into", "is", "it", "its", "may", "me", "might", "my", "no", "not", "of", "on", "or", "our",
    "should", "so", "such", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "was", "we", "were", "what", "when", "where", "which", "who",
    "whom", "whose", "why", "will", "with", "would", "you", "your", "us",
];

/// The most bytes of a word that are compared.
const MAX_WORD: usize = 64;

/// The words of a text, in order.
///
/// ```
/// assert_eq!(paraph_retrieval::words("The crew sailed"), ["the", "crew", "sail"]);
/// ```
pub fn words(text: &str) -> Vec<String> {
    raw(text).into_iter().map(stem).collect()
}

/// The words of a query that say what is looked for, sorted, each once; all of them if none does.
pub fn wanted(query: &str) -> Vec<String> {
    let all = raw(query);
    let says_something = |word: &&String| !EMPTY_WORDS.contains(&word.as_str());
    let mut wanted: Vec<String> = all.iter().filter(says_something).cloned().collect();
    if wanted.is_empty() {
        wanted = all;
    }
    let mut wanted: Vec<String> = wanted.into_iter().map(stem).collect();
    wanted.sort();
    wanted.dedup();
    wanted
}

/// Runs of letters and digits of any script. Scripts that put no space between words give their characters and pairs
/// of neighbours. A number keeps its point and loses the commas between its thousands.
fn raw(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut neighbour: Option<char> = None;
    let mut characters = text.chars().flat_map(char::to_lowercase).peekable();
    while let Some(c) = characters.next() {
        if is_unspaced(c) {
            finish(&mut word, &mut all);
            all.push(c.to_string());
            all.extend(neighbour.map(|before| format!("{before}{c}")));
            neighbour = Some(c);
            continue;
        }
        neighbour = None;
        let next = characters.peek().copied();
        if c.is_alphanumeric() {
            if word.len() + c.len_utf8() <= MAX_WORD {
                word.push(c);
            }
        } else if in_number(&word, c, next) {
            word.extend((c == '.').then_some(c));
        } else if !is_accent(c) {
            finish(&mut word, &mut all);
        }
    }
    finish(&mut word, &mut all);
    all
}

fn finish(word: &mut String, all: &mut Vec<String>) {
    if !word.is_empty() {
        all.push(std::mem::take(word));
    }
}

fn in_number(word: &str, c: char, next: Option<char>) -> bool {
    let digit = |c: char| c.is_ascii_digit();
    matches!(c, '.' | ',') && word.ends_with(digit) && next.is_some_and(digit)
}

/// An accent of its own, as some systems write letters.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Characters of scripts that put no space between words: Thai to Khmer, kana, Han.
fn is_unspaced(c: char) -> bool {
    let script = matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}');
    script && c.is_alphanumeric()
}

/// A word without its English endings: of plurals, of verbs, of a few nouns and adverbs.
fn stem(word: String) -> String {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    let word = singular(&word);
    let word = present(&word);
    let tail = [("ly", 4), ("al", 5), ("er", 4)];
    let shorter = tail
        .iter()
        .find_map(|(ending, least)| without(&word, ending, *least))
        .or_else(|| {
            let rest = without(&word, "ion", 4).or_else(|| without(&word, "or", 4))?;
            rest.ends_with(['s', 't']).then_some(rest)
        })
        .unwrap_or(&word);
    without(shorter, "e", 3).unwrap_or(shorter).to_owned()
}

/// What is left of a word without this ending, if that is long enough and can be spoken.
fn without<'w>(word: &'w str, ending: &str, least: usize) -> Option<&'w str> {
    let rest = word.strip_suffix(ending)?;
    (rest.len() >= least && rest.contains(['a', 'e', 'i', 'o', 'u', 'y'])).then_some(rest)
}

fn singular(word: &str) -> String {
    if let Some(rest) = without(word, "ies", 2) {
        return format!("{rest}y");
    }
    let hissing = ["ss", "x", "z", "ch", "sh"];
    let rest = match word.strip_suffix("es") {
        Some(rest) if hissing.iter().any(|end| rest.ends_with(end)) => rest,
        _ if ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) => word,
        _ => word.strip_suffix('s').unwrap_or(word),
    };
    rest.to_owned()
}

fn present(word: &str) -> String {
    if let Some(rest) = without(word, "ied", 2) {
        return format!("{rest}y");
    }
    if word.ends_with("eed") {
        return word.to_owned();
    }
    let Some(rest) = without(word, "ing", 3).or_else(|| without(word, "ed", 3)) else {
        return word.to_owned();
    };
    let mut ends = rest.chars().rev();
    match (ends.next(), ends.next()) {
        (Some(last), Some(before)) if last == before && !"aeiouylsz".contains(last) => {
            rest.strip_suffix(last).unwrap_or(rest).to_owned()
        }
        _ => rest.to_owned(),
    }
}
