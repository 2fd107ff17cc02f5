//! Works from hub to cluster and away again, with an agent in this process.

mod adoption;
mod applying;
mod bad_input;
mod delete_option;
mod foreground;
mod guard;
mod letting_go;
mod widgets;
