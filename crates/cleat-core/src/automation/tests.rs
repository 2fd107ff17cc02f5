mod examples;
mod histories;
mod jobs;
mod limits;
mod oracle;
mod world;
