//! What dashboards for Kubernetes ask a server for is there, under the labels they ask by.

use anyhow::Result;
use cleat_world::eventually;

use crate::Place;

#[tokio::test]
async fn dashboards_find_what_they_ask_for() -> Result<()> {
    let place = Place::new("metrics").await?;
    place.config_map("counted").await?;
    let about = "component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"configmaps\",\
                 scope=\"resource\",subresource=\"\",verb=\"POST\",version=\"v1\"";
    let mut series = vec![
        format!("apiserver_request_total{{code=\"201\",{about}}} "),
        format!("apiserver_request_duration_seconds_count{{{about}}} "),
        format!("apiserver_request_duration_seconds_sum{{{about}}} "),
        "apiserver_current_inflight_requests{request_kind=\"mutating\"} ".to_owned(),
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"} ".to_owned(),
    ];
    for bound in ["0.005", "0.1", "1", "5", "30", "60", "+Inf"] {
        let name = "apiserver_request_duration_seconds_bucket";
        series.push(format!("{name}{{{about},le=\"{bound}\"}} "));
    }
    // A request is counted when it has been answered, which may be after its client reads on.
    eventually("the request to be counted", || async {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let page = place.client.request_text(request).await?;
        let missing: Vec<&String> = series
            .iter()
            .filter(|series| !page.lines().any(|line| line.starts_with(series.as_str())))
            .collect();
        if !missing.is_empty() {
            eprintln!("not there yet: {missing:?}");
        }
        Ok(missing.is_empty().then_some(()))
    })
    .await
}
