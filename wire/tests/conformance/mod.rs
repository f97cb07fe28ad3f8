//! What every network must do. Each scenario is a program that all nodes run.

#![allow(dead_code, reason = "each test program uses a part")]

mod ends;
pub mod node;
mod notes;
mod patterns;
mod posts;
pub mod transfers;

use anabranch_wire::Endpoint;

/// A scenario, by name.
#[derive(Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub run: fn(Endpoint),
}

macro_rules! scenarios {
    ($($module:ident: $($name:ident)*;)*) => {
        &[$($(Scenario { name: stringify!($name), run: $module::$name },)*)*]
    };
}

/// Scenarios that end with `finish` on every node.
pub const SCENARIOS: &[Scenario] = scenarios! {
    transfers: boxes_of_all_dimensions sizes_around_every_limit thousands_outstanding several_senders_and_boxes
        windows_of_a_block a_flood_stays_with_its_sender a_part_is_reported_before_the_others_come wrong_arguments_are_refused
        to_oneself;
    posts: posts_stay_in_order posts_of_all_sizes;
    notes: some_send_and_some_give_notes a_note_that_is_there_already_is_reported gather_with_notes broadcast_with_notes
        wrong_notes_are_refused;
    patterns: gather_is_like_all_pairs gather_of_large_parts broadcast_from_several_roots barriers patterns_in_different_orders;
};

/// Scenarios that end with an error on every node.
pub const ENDS: &[Scenario] = scenarios! {
    ends: a_node_leaves a_node_aborts a_node_sends_too_much a_node_leaves_with_transfers_under_way;
};
