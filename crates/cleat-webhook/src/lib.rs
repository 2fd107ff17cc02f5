//! AdmissionReview in, pure decision, AdmissionReview out.
