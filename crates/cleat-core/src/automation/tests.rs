mod examples;
mod histories;
mod jobs;
mod limits;
mod mishaps;
mod oracle;
mod paced;
mod world;
