//! stub
use crate::core::event::AgentEvent;
#[derive(Debug, Default)]
pub struct Chain {}
#[derive(Debug, Default)]
pub struct History {}
impl Chain {
    pub fn line(&mut self, _: &[u8]) {}
    pub fn finish(self) -> History {
        History::default()
    }
}
impl History {
    pub fn line<'a>(&mut self, _: &'a str, _: &str, _: &mut Vec<AgentEvent<'a>>) {}
}
