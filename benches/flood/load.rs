//! Load of the flooding agent, and its command-line arguments.

/// Updates of each turn.
pub(crate) struct Load {
    pub(crate) updates: u64,
    pub(crate) mixed: bool,
    pub(crate) interval_us: u64,
}

impl Load {
    pub(crate) fn text(updates: u64) -> Self {
        Self {
            updates,
            mixed: false,
            interval_us: 0,
        }
    }

    pub(crate) fn args(&self) -> Vec<String> {
        let mix = if self.mixed { "mixed" } else { "text" };
        let (updates, interval) = (self.updates.to_string(), self.interval_us.to_string());
        [
            "--updates",
            &updates,
            "--mix",
            mix,
            "--interval-us",
            &interval,
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {}",
            self.updates,
            if self.mixed { "mixed" } else { "text" }
        )
    }
}
