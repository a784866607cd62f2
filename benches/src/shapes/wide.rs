//! `wide_IxN`: a state of fifteen channels, as a support inbox has, whose values are copied from channel to channel.
//!
//! Nodes `one → two → {three, four} → five → six` go round until there are more than N messages; six triples them.
//! The one message of the input is a map of maps that holds I lists of 25 mixed values.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join;
use paraph_graph::{Ctx, END, Graph, Result, State, Update, with};
use serde::Serialize;
use serde_json::{Value, json};

use crate::case::{Case, Floor, step};
use crate::{Fault, Setting, Shape};

/// A value of the inbox: shared between channels and not copied, as Python would.
type Item = Arc<Value>;

#[derive(State, Clone, Default, Serialize)]
struct Inbox {
    #[reduce(append)]
    messages: Vec<Item>,
    #[reduce(append)]
    events: Vec<Item>,
    #[reduce(append)]
    categories: Vec<Item>,
    #[reduce(append)]
    replies: Vec<Item>,
    #[reduce(merge)]
    people: BTreeMap<String, Item>,
    #[reduce(merge)]
    notified: BTreeMap<String, Item>,
    rules: Vec<Item>,
    memories: Vec<Item>,
    issue: Item,
    auto_reply: Item,
    user: Item,
    customer: Item,
    medium: String,
    thread: String,
    bot: String,
}

/// How many letters a string channel gets.
type Letters = usize;

async fn one(letters: &Letters, inbox: &Inbox, _: &Ctx) -> Result<Update<Inbox>> {
    let (event, medium) = receive(*letters, inbox);
    Ok(Inbox::update().events(event).medium(medium))
}

async fn two(_: &Letters, inbox: &Inbox, _: &Ctx) -> Result<Update<Inbox>> {
    let (issue, auto_reply) = read(inbox);
    Ok(Inbox::update().issue(issue).auto_reply(auto_reply))
}

async fn three(letters: &Letters, inbox: &Inbox, _: &Ctx) -> Result<Update<Inbox>> {
    let (rules, bot) = find_rules(*letters, inbox);
    Ok(Inbox::update().rules(rules).bot(bot))
}

async fn four(_: &Letters, inbox: &Inbox, _: &Ctx) -> Result<Update<Inbox>> {
    let (category, reply, memories) = sort(inbox);
    Ok(Inbox::update()
        .categories([category])
        .replies([reply])
        .memories(memories))
}

async fn five(letters: &Letters, inbox: &Inbox, _: &Ctx) -> Result<Update<Inbox>> {
    let found = find_people(*letters, inbox);
    Ok(Inbox::update()
        .user(found.user)
        .customer(found.customer)
        .people(found.people)
        .notified(found.notified)
        .thread(found.thread))
}

async fn six(_: &Letters, inbox: &Inbox, _: &Ctx) -> Result<Update<Inbox>> {
    Ok(Inbox::update().messages(answer(inbox)))
}

fn receive(letters: Letters, inbox: &Inbox) -> (Option<Item>, String) {
    (inbox.messages.last().cloned(), random(letters, 1))
}

fn read(inbox: &Inbox) -> (Item, Item) {
    (first(&inbox.messages), first(&inbox.events))
}

fn find_rules(letters: Letters, inbox: &Inbox) -> (Vec<Item>, String) {
    (vec![inbox.issue.clone()], random(letters, 3))
}

fn sort(inbox: &Inbox) -> (Item, Item, Vec<Item>) {
    (
        inbox.auto_reply.clone(),
        inbox.issue.clone(),
        inbox.events.clone(),
    )
}

#[derive(Serialize)]
struct Found {
    user: Item,
    customer: Item,
    people: BTreeMap<String, Item>,
    notified: BTreeMap<String, Item>,
    thread: String,
}

fn find_people(letters: Letters, inbox: &Inbox) -> Found {
    let keyed =
        |value: &Item| BTreeMap::from([(format!("person {}", inbox.replies.len()), value.clone())]);
    Found {
        user: inbox.issue.clone(),
        customer: first(&inbox.rules),
        people: keyed(&inbox.issue),
        notified: keyed(&inbox.auto_reply),
        thread: random(letters, 5),
    }
}

fn answer(inbox: &Inbox) -> Vec<Item> {
    inbox
        .messages
        .iter()
        .chain(&inbox.messages)
        .cloned()
        .collect()
}

fn first(list: &[Item]) -> Item {
    list.first().cloned().unwrap_or_default()
}

/// Letters that look random and are the same in each run.
fn random(count: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..count).map(|_| letter()).collect()
}

/// A map of maps with `lists` lists: as square as it goes.
fn message(lists: usize) -> Value {
    let inner = (1..=5)
        .rev()
        .find(|inner| lists.is_multiple_of(*inner))
        .unwrap_or(1);
    let mixed: Vec<Value> = (0..5)
        .flat_map(|_| {
            [
                json!("hi?".repeat(10)),
                json!(true),
                json!(1),
                json!(6_327_816_386_138_u64),
                Value::Null,
            ]
        })
        .collect();
    let name = |at: usize| at.to_string().repeat(10);
    let row: BTreeMap<String, &Vec<Value>> = (0..inner).map(|at| (name(at), &mixed)).collect();
    let table: BTreeMap<String, _> = (0..lists / inner).map(|at| (name(at), &row)).collect();
    json!(table)
}

/// How often it goes round: the messages triple each time, from one.
fn rounds(letters: usize) -> usize {
    let mut count = 1;
    let mut rounds = 0;
    while count <= letters {
        count *= 3;
        rounds += 1;
    }
    rounds
}

pub(super) fn case(lists: usize, letters: usize) -> Result<Box<dyn Shape>, Fault> {
    let graph = Graph::<Inbox>::new("wide")
        .node("one", with(letters, one))
        .node("two", with(letters, two))
        .node("three", with(letters, three))
        .node("four", with(letters, four))
        .node("five", with(letters, five))
        .node("six", with(letters, six))
        .start("one")
        .edge("one", "two")
        .edge("two", ["three", "four"])
        .join(["three", "four"], "five")
        .edge("five", "six")
        .branch(
            "six",
            move |inbox| {
                if inbox.messages.len() > letters {
                    END
                } else {
                    "one"
                }
            },
            ["one", END],
        )
        .build()?;
    let message = Arc::new(message(lists));
    let for_floor = message.clone();
    let events = rounds(letters) * 6;
    Ok(Box::new(Case {
        name: format!("wide_{lists}x{letters}"),
        graph,
        input: Box::new(move || Inbox::update().messages([message.clone()])),
        events,
        node_runs: events,
        durable: Vec::new(),
        floor: Box::new(move |setting| {
            let inbox = Inbox {
                messages: vec![for_floor.clone()],
                ..Inbox::default()
            };
            Box::pin(floor(inbox, letters, setting))
        }),
        check: Box::new(move |inbox| inbox.messages.len() > letters && inbox.bot.len() == letters),
    }))
}

async fn floor(inbox: Inbox, letters: Letters, setting: Setting) -> Floor<Inbox> {
    let (one, two) = (step(move |inbox| receive(letters, inbox)), step(read));
    let (three, four) = (step(move |inbox| find_rules(letters, inbox)), step(sort));
    let (five, six) = (step(move |inbox| find_people(letters, inbox)), step(answer));
    let mut floor = Floor::from(inbox);
    floor.tell(setting, &floor.state.messages.clone());
    loop {
        let new = one(&floor.state).await;
        floor.tell(setting, &new);
        floor.state.events.extend(new.0);
        floor.state.medium = new.1;

        let new = two(&floor.state).await;
        floor.tell(setting, &new);
        (floor.state.issue, floor.state.auto_reply) = new;

        let new = join(three(&floor.state), four(&floor.state)).await;
        floor.tell(setting, &new);
        let (rules, (category, reply, memories)) = new;
        (floor.state.rules, floor.state.bot) = rules;
        floor.state.categories.push(category);
        floor.state.replies.push(reply);
        floor.state.memories = memories;

        let new = five(&floor.state).await;
        floor.tell(setting, &new);
        (floor.state.user, floor.state.customer, floor.state.thread) =
            (new.user, new.customer, new.thread);
        floor.state.people.extend(new.people);
        floor.state.notified.extend(new.notified);

        let new = six(&floor.state).await;
        floor.tell(setting, &new);
        floor.state.messages.extend(new);
        if floor.state.messages.len() > letters {
            return floor;
        }
    }
}
