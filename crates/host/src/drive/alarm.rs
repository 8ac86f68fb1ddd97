//! The timer of the loop, which is set again only if it would ring too late.

use std::pin::Pin;
use std::time::Instant;
use tokio::time::{Sleep, sleep_until};

/// Timer that rings at the latest at the requested time.
///
/// With each update the next deadline moves to a later time. The timer keeps the earlier one and rings once for
/// nothing, which costs less than setting it for each update.
#[derive(Default)]
pub struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Waits until `time`, or a shorter time; never ends without a time. Cancel safe.
    pub async fn until(&mut self, time: Option<Instant>) {
        let Some(time) = time.map(Into::into) else {
            return std::future::pending().await;
        };
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(time)));
        if sleep.is_elapsed() || sleep.deadline() > time {
            sleep.as_mut().reset(time);
        }
        sleep.as_mut().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn alarm_keeps_an_earlier_time_and_rings_once_for_it() {
        let mut alarm = Alarm::default();
        let begun = tokio::time::Instant::now();
        let at = |seconds| Some((begun + Duration::from_secs(seconds)).into_std());
        for (set, then, rings) in [(30, 20, 20), (40, 50, 40), (60, 60, 60)] {
            tokio::select! {
                biased;
                () = alarm.until(at(set)) => panic!("the time has not come"),
                () = std::future::ready(()) => {}
            }
            alarm.until(at(then)).await;
            assert_eq!(begun.elapsed().as_secs(), rings);
        }
    }
}
