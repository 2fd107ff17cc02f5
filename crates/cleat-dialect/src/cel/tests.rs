use super::*;

/// Little enough to be spent at once by code that was not optimised.
const FEW_STEPS: u64 = 100_000;

fn within(budget: &Budget, source: &str) -> Result<Value, Failure> {
    Expression::parse(source).unwrap().evaluate_within(budget, Functions::Kubernetes, &[])
}

/// That it is refused, and not only after it was done.
fn refused(source: &str) {
    assert_eq!(within(&Budget::of(FEW_STEPS), source), Err(Failure::OverBudget), "{source}");
}

#[test]
fn loops_over_lists_that_an_expression_made_itself_were_not_counted() {
    let ones = vec!["1"; 300].join(",");
    for source in [
        "lists.range(100000).all(a, lists.range(100000).all(b, true))",
        "lists.range(90000).exists(a, lists.range(90000).exists(b, false))",
        // An error that is swallowed buys no further round.
        "lists.range(300).all(a, lists.range(90000).all(b, true) || true)",
        "lists.range(300).all(a, lists.range(10000).size() > 0)",
        "lists.range(5000).map(a, a).size() > 0",
        "lists.range(300).map(a, lists.range(300).map(b, 'text')).size() > 0",
        &format!("[{ones}].all(a, [{ones}].all(b, [{ones}].all(c, [{ones}].all(d, true))))"),
        &format!("'{ones}'.split(',').all(a, '{ones}'.split(',').all(b, a == b))"),
    ] {
        refused(source);
    }
}

#[test]
fn text_that_doubled_in_every_loop_filled_the_memory() {
    for double in [".map(a, a + a)", ".map(a, [a, a])", ".map(a, a.replace('x', a))"] {
        refused(&format!("['xx']{} == []", double.repeat(60)));
    }
    refused(&format!("[['xx']]{} == []", ".map(a, [a.join(a[0]), a.join(a[0])])".repeat(40)));
}

#[test]
fn a_budget_is_for_all_who_share_it() {
    let budget = Budget::of(FEW_STEPS);
    let loops = "lists.range(10).all(a, lists.range(100).all(b, b >= 0))";
    let answers: Vec<_> = (0..40).map(|_| within(&budget, loops)).collect();
    let paid = answers.iter().take_while(|answer| **answer == Ok(Value::Bool(true))).count();
    assert!((2..40).contains(&paid), "{paid}");
    assert!(answers[paid..].iter().all(|answer| *answer == Err(Failure::OverBudget)));
    assert_eq!(within(&Budget::of(FEW_STEPS), loops), Ok(Value::Bool(true)));
}

#[test]
fn what_is_usual_is_within_the_budget() {
    for (source, value) in [
        ("lists.range(1000).map(a, a * 2).filter(a, a > 5).size() == 997", true),
        ("lists.range(1000).all(a, lists.range(20).exists(b, b * 100 >= a))", true),
        ("'a-b-c'.replace('-', '+') + 'a-b-c'.replace('-', '', 1) == 'a+b+cab-c'", true),
        ("'abc'.replace('', '.') == '.a.b.c.' && 'abc'.replace('b', 'x', 0) == 'abc'", true),
        ("['a', 'b'].join('-') + [1, 2].join() == 'a-bInt(1)Int(2)'", true),
    ] {
        assert_eq!(within(&Budget::default(), source), Ok(Value::Bool(value)), "{source}");
    }
}
