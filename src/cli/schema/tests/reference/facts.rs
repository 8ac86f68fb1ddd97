//! Numbers and names on the pages that are those of the code: time limits, other limits, environment variables.
