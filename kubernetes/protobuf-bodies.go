//go:build ignore

// Prints the protobuf bodies of conformance/cases/protobuf, as kubectl would send them: `go run protobuf-bodies.go`.
package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

func p[T any](v T) *T { return &v }

func out(name string, o runtime.Object) {
	gvks, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		panic(err)
	}
	gvk := gvks[0]
	if _, ok := o.(*metav1.DeleteOptions); ok {
		gvk = schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	var b bytes.Buffer
	s := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	if err := s.Encode(o, &b); err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdout, "%s %s\n", name, base64.StdEncoding.EncodeToString(b.Bytes()))
}

func main() {
	m := func(n string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: n, Labels: map[string]string{"from": "protobuf"}, Annotations: map[string]string{"a": "b"}}
	}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: p(int64(5)), NodeSelector: map[string]string{"n": "s"},
		Containers: []corev1.Container{{Name: "c", Image: "i", Command: []string{"x", "y"}, Env: []corev1.EnvVar{{Name: "E", Value: "1"}, {Name: "F", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
			Ports:         []corev1.ContainerPort{{ContainerPort: 80, Name: "web"}},
			Resources:     corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/x", Port: intstr.FromString("web")}}}, SecurityContext: &corev1.SecurityContext{RunAsNonRoot: p(true), RunAsUser: p(int64(1000))}}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, DefaultMode: p(int32(0400))}}}}}}
	out("namespace", &corev1.Namespace{ObjectMeta: m("pb")})
	out("configmap", &corev1.ConfigMap{ObjectMeta: m("a"), Data: map[string]string{"k": "v", "ü": ""}, BinaryData: map[string][]byte{"b": {0, 1, 255}}, Immutable: p(false)})
	out("configmap-plain", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v", "l": ""}, BinaryData: map[string][]byte{"b": {0, 1, 255}}, Immutable: p(false)})
	out("secret", &corev1.Secret{ObjectMeta: m("a"), Data: map[string][]byte{"k": []byte("v")}, Type: "Opaque"})
	out("serviceaccount", &corev1.ServiceAccount{ObjectMeta: m("a"), AutomountServiceAccountToken: p(false), Secrets: []corev1.ObjectReference{{Name: "s"}}})
	out("service", &corev1.Service{ObjectMeta: m("a"), Spec: corev1.ServiceSpec{Type: "ClusterIP", Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{Name: "x", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: "TCP"}, {Name: "y", Port: 81, TargetPort: intstr.FromString("web")}}}})
	out("deployment", &appsv1.Deployment{ObjectMeta: m("a"), Spec: appsv1.DeploymentSpec{Replicas: p(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"b", "c"}}}}, Template: pod, Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: p(intstr.FromString("30%")), MaxUnavailable: p(intstr.FromInt32(2))}}}})
	out("role", &rbacv1.Role{ObjectMeta: m("a"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"x"}}}})
	out("rolebinding", &rbacv1.RoleBinding{ObjectMeta: m("a"), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "a"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "u", APIGroup: "rbac.authorization.k8s.io"}}})
	out("clusterrole", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pb"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}}}, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"pb": "none"}}}}})
	out("job", &batchv1.Job{ObjectMeta: m("a"), Spec: batchv1.JobSpec{Suspend: p(true), BackoffLimit: p(int32(3)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: "Never", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}})
	out("cronjob", &batchv1.CronJob{ObjectMeta: m("a"), Spec: batchv1.CronJobSpec{Schedule: "* * * * *", Suspend: p(true), JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: "Never", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}}})
	out("ingress", &networkingv1.Ingress{ObjectMeta: m("a"), Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "h.example.com", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: p(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}})
	out("pdb", &policyv1.PodDisruptionBudget{ObjectMeta: m("a"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: p(intstr.FromString("50%")), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}})
	out("quota", &corev1.ResourceQuota{ObjectMeta: m("a"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Gi"), "pods": resource.MustParse("10")}}})
	out("lease", &coordv1.Lease{ObjectMeta: m("a"), Spec: coordv1.LeaseSpec{HolderIdentity: p("me"), LeaseDurationSeconds: p(int32(15)), RenewTime: &metav1.MicroTime{Time: metav1.Unix(978307200, 123456000).Time}}})
	out("event", &corev1.Event{ObjectMeta: m("a"), InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Name: "a", Namespace: "NS"}, Reason: "R", Message: "M", Type: "Normal", FirstTimestamp: metav1.Unix(978307200, 0), Count: 2, Source: corev1.EventSource{Component: "c"}})
	out("token", &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: p(int64(1200)), Audiences: []string{"x"}}})
	out("can-i", &authzv1.SelfSubjectAccessReview{Spec: authzv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authzv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "default"}}})
	out("rules", &authzv1.SelfSubjectRulesReview{Spec: authzv1.SelfSubjectRulesReviewSpec{Namespace: "default"}})
	out("whoami", &authv1.SelfSubjectReview{})
	out("delete-options", &metav1.DeleteOptions{GracePeriodSeconds: p(int64(0)), PropagationPolicy: p(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: p(metav1.ObjectMeta{UID: "11111111-2222-3333-4444-555555555555"}.UID)}})
	out("delete-plain", &metav1.DeleteOptions{PropagationPolicy: p(metav1.DeletePropagationBackground)})
	out("pod", &corev1.Pod{ObjectMeta: m("a"), Spec: pod.Spec})
	out("priorityclass", &corev1.LimitRange{ObjectMeta: m("a"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: "Container", Default: corev1.ResourceList{"cpu": resource.MustParse("100m")}}}}})
}
