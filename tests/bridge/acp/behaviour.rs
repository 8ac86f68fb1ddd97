//! Behaviour of `acpipe acp`, with the test as the editor and scripted agents behind it.

mod agents;
mod claude;
mod crashes;
mod editor;
mod history;
mod malformed;
mod passing;
mod prompts;
mod recovery;
mod requests;
mod stored;
