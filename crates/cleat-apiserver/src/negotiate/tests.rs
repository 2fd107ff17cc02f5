use proptest::prelude::*;

use super::*;

#[test]
fn answers_are_chosen() {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let kubectl =
        format!("{table},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json");
    let client_go = "application/vnd.kubernetes.protobuf,application/json";
    let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                    application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                     application/json";
    for (accept, endpoint, format, view) in [
        ("", Endpoint::Resource, Format::Json, View::Object),
        ("*/*", Endpoint::Resource, Format::Json, View::Object),
        ("*", Endpoint::Resource, Format::Json, View::Object),
        ("application/*", Endpoint::Plain, Format::Json, View::Object),
        ("text/html, */*;q=0.1", Endpoint::Resource, Format::Json, View::Object),
        (" application/yaml ", Endpoint::Resource, Format::Yaml, View::Object),
        ("application/json;q=0.5,application/yaml", Endpoint::Resource, Format::Yaml, View::Object),
        (client_go, Endpoint::Resource, Format::Json, View::Object),
        (client_go, Endpoint::Watch, Format::Json, View::Object),
        (&kubectl, Endpoint::Resource, Format::Json, View::Table(MetaVersion::V1)),
        (&kubectl, Endpoint::Plain, Format::Json, View::Object),
        (metadata, Endpoint::Watch, Format::Json, View::PartialObjectMetadata(MetaVersion::V1)),
        (discovery, Endpoint::Discovery, Format::Json, View::AggregatedDiscovery),
        (discovery, Endpoint::Plain, Format::Json, View::Object),
        ("application/json", Endpoint::Discovery, Format::Json, View::Object),
        ("application/json;stream=watch", Endpoint::Watch, Format::Json, View::Object),
    ] {
        let answer = answer(accept, endpoint).unwrap();
        assert_eq!((answer.format, answer.view), (format, view), "{accept}");
    }
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let all = "only the following media types are accepted: application/json, application/yaml, \
               application/vnd.kubernetes.protobuf";
    let none_of_ours = "406: Not Acceptable\n\nAvailable representations: application/json, \
                        application/yaml, application/vnd.kubernetes.protobuf";
    for (accept, endpoint, expected) in [
        ("text/html", Endpoint::Resource, none_of_ours),
        ("application/vnd.kubernetes.protobuf", Endpoint::Resource, all),
        ("application/json;as=Table;v=v1;g=other", Endpoint::Resource, all),
        ("nonsense", Endpoint::Resource, none_of_ours),
        (
            "application/yaml",
            Endpoint::Watch,
            "only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch",
        ),
    ] {
        let status = answer(accept, endpoint).unwrap_err();
        assert_eq!((status.code, &*status.message), (406, expected), "{accept}");
    }
}

#[test]
fn bodies_are_recognized() {
    for (content_type, expected) in [
        ("", BodyFormat::Json),
        ("application/json", BodyFormat::Json),
        ("Application/JSON; charset=utf-8", BodyFormat::Json),
        ("application/yaml", BodyFormat::Yaml),
        ("application/vnd.kubernetes.protobuf", BodyFormat::Protobuf),
    ] {
        assert_eq!(body_format(content_type), Ok(expected));
    }
    assert_eq!(
        body_format("text/plain").unwrap_err().message,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    assert_eq!(patch_type("application/apply-patch+yaml", false), Ok(PatchType::Apply));
    assert_eq!(
        patch_type("application/merge-patch+json; charset=utf-8", false),
        Ok(PatchType::Merge)
    );
    assert_eq!(
        patch_type("application/strategic-merge-patch+json", true),
        Ok(PatchType::Strategic)
    );
    let status = patch_type("application/strategic-merge-patch+json", false).unwrap_err();
    assert_eq!(
        (status.code, &*status.message),
        (
            415,
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, \
             application/apply-patch+yaml"
        )
    );
}

#[test]
fn people_get_indented_answers() {
    let plain = answer("", Endpoint::Resource).unwrap();
    let query = |text| Query::parse(text);
    assert!(is_pretty(plain, &query("pretty=true"), "kubectl"));
    assert!(is_pretty(plain, &query(""), "curl/8.0"));
    assert!(!is_pretty(plain, &query("pretty=false"), "curl/8.0"));
    assert!(!is_pretty(plain, &query(""), "kubectl"));
}

proptest! {
    #[test]
    fn no_header_breaks_it(header in "([a-z*]*/?[a-z*]*(;(as|q|g|v)?=?[a-z0-9.]*)*,?)*|.*") {
        let _ = answer(&header, Endpoint::Resource);
        let _ = answer(&header, Endpoint::Discovery);
        let _ = body_format(&header);
        let _ = patch_type(&header, true);
    }
}
