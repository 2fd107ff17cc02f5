//! Asking a hub that may not answer for a moment: nothing ends because one answer was lost.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep, timeout};

use super::PAUSE;
use crate::Halted;

/// How long one answer may take.
pub(super) const ANSWER: Duration = Duration::from_secs(15);

/// How long there may be no answer before nobody waits for it any more.
const SILENCE: Duration = Duration::from_secs(60);

/// Whoever waits for a cluster to leave.
pub(super) struct Waiting {
    /// What is to be said to whoever does not get to see the end.
    pub(super) meanwhile: String,
    /// However long the hub is silent.
    pub(super) for_ever: bool,
}

impl Waiting {
    /// The answer to a question, which is asked again while there is none. `waits` is told why.
    pub(super) async fn ask<T>(
        &self,
        mut waits: impl FnMut(&str),
        mut question: impl AsyncFnMut() -> kube::Result<T>,
    ) -> Result<T> {
        let since = Instant::now();
        loop {
            let why = match timeout(ANSWER, question()).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if !is_passing(&error) => return Err(error.into()),
                Ok(Err(error)) => format!("{:#}", anyhow::Error::from(error)),
                Err(_) => format!("nothing was heard for {} s", ANSWER.as_secs()),
            };
            if !self.for_ever && since.elapsed() >= SILENCE {
                let said = format!("the hub has not answered for a minute: {why}");
                return Err(Halted(format!("{said}\n{}", self.meanwhile)).into());
            }
            waits(&why);
            sleep(PAUSE).await;
        }
    }
}

/// Whether another try may be answered otherwise: nobody decided anything.
fn is_passing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
    use crate::{HALTED, exit_code};

    fn waiting() -> Waiting {
        Waiting { meanwhile: "It goes on.".to_owned(), for_ever: false }
    }

    fn refused(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure("so", "So").with_code(code)))
    }

    fn cut() -> kube::Error {
        kube::Error::Service("connection reset".into())
    }

    #[tokio::test(start_paused = true)]
    async fn one_lost_answer_ended_the_command_while_the_cluster_left() {
        let waiting = waiting();
        let mut lost = vec![refused(503), cut(), cut()];
        let mut told = Vec::new();
        let answer = waiting
            .ask(|why| told.push(why.to_owned()), async || lost.pop().map_or(Ok("here"), Err))
            .await;
        assert_eq!((answer.unwrap(), told.len()), ("here", 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_stays_silent_is_given_up() {
        let waiting = waiting();
        let begun = Instant::now();
        let error = waiting.ask(|_| {}, async || Err::<(), _>(cut())).await.unwrap_err();
        assert_eq!(exit_code(&error), HALTED);
        assert!(error.to_string().ends_with("connection reset\nIt goes on."), "{error}");
        assert!((SILENCE..SILENCE * 2).contains(&begun.elapsed()));
        // One that says no is not asked again.
        let error = waiting.ask(|_| {}, async || Err::<(), _>(refused(403))).await.unwrap_err();
        assert_eq!(exit_code(&error), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_takes_a_question_and_never_answers_is_asked_again() {
        let mut asked = 0;
        let answer = waiting()
            .ask(
                |_| {},
                async || {
                    asked += 1;
                    if asked == 1 { std::future::pending().await } else { Ok(asked) }
                },
            )
            .await;
        assert_eq!(answer.unwrap(), 2);
    }
}
