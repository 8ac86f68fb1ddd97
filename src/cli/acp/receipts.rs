//! Receipts of restores in words.

use acpipe_core::terms::differing_text;
use acpipe_protocol::wire;
use acpipe_protocol::wire::Memory;

/// Describes a restore, if the user has to know of it.
pub fn receipt_text(session: &str, recovery: &wire::Recovery) -> Option<String> {
    let mut sentences = Vec::new();
    if let Some(other) = &recovery.handed_over_from {
        sentences.push(format!(
            "this agent continues the session of the agent {other}"
        ));
    }
    match (remembers(recovery), recovery.reinjected) {
        (_, 1..) => sentences.push(
            "the agent does not remember the earlier messages; it receives them with the next prompt".to_owned(),
        ),
        (false, 0) => sentences.push("the agent does not remember the earlier messages".to_owned()),
        (true, 0) => {}
    }
    for setting in &recovery.not_restored {
        sentences.push(format!(
            "{} was not restored: {}",
            setting.setting, setting.message
        ));
    }
    sentences.extend(differing_text(session, recovery));
    sentences.extend(recovery.warning.clone());
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Returns `true` if the agent remembers the session.
fn remembers(recovery: &wire::Recovery) -> bool {
    matches!(
        recovery.memory,
        Memory::Kept | Memory::Replayed | Memory::None
    )
}
