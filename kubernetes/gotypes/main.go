// Command gotypes prints how Go writes Kubernetes' built-in types as JSON: which fields are always
// there, which vanish when they are empty, and which hold quantities, times or bytes. OpenAPI
// documents do not say this, and a server that is not written in Go cannot know it otherwise. It
// also prints the names of all kinds that Kubernetes knows, whether they are served or not.
//
//	go run ./gotypes > ../crates/cleat-dialect/data/gotypes.txt
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// opaque types have a JSON form of their own.
var opaque = map[string]string{
	"k8s.io/apimachinery/pkg/api/resource.Quantity":   "q",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":       "t",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":  "m",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":   "d",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":   "x",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":    "x",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": "o",

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps": "x",
}

var served = map[string]bool{
	"admissionregistration.k8s.io/v1": true, "apps/v1": true, "autoscaling/v1": true, "autoscaling/v2": true,
	"batch/v1": true, "certificates.k8s.io/v1": true, "coordination.k8s.io/v1": true, "v1": true,
	"discovery.k8s.io/v1": true, "events.k8s.io/v1": true, "flowcontrol.apiserver.k8s.io/v1": true,
	"networking.k8s.io/v1": true, "node.k8s.io/v1": true, "policy/v1": true, "rbac.authorization.k8s.io/v1": true,
	"resource.k8s.io/v1": true, "scheduling.k8s.io/v1": true, "storage.k8s.io/v1": true,
	"authentication.k8s.io/v1": true, "authorization.k8s.io/v1": true,
}

// internal kinds are registered but never sent as objects.
var internal = map[string]bool{
	"APIGroup": true, "APIVersions": true, "PodStatusResult": true, "RangeAllocation": true,
	"SerializedReference": true, "Status": true, "WatchEvent": true,
}

func name(t reflect.Type) string {
	path := strings.TrimPrefix(t.PkgPath(), "k8s.io/")
	path = strings.TrimPrefix(path, "api/")
	path = strings.TrimPrefix(path, "apimachinery/pkg/apis/")
	path = strings.TrimPrefix(path, "apiextensions-apiserver/pkg/apis/")
	return path + "." + t.Name()
}

// named is the Go name of a type that is not a plain one, as decoding errors print it.
func named(t reflect.Type) string {
	if t.PkgPath() == "" {
		return ""
	}
	return ":" + t.String()
}

type table struct{ types map[string]reflect.Type }

func (g *table) code(t reflect.Type) string {
	if c, ok := opaque[t.PkgPath()+"."+t.Name()]; ok {
		return c
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + g.code(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		return "[" + g.code(t.Elem())
	case reflect.Map:
		return "{" + g.code(t.Elem())
	case reflect.String:
		return "s" + named(t)
	case reflect.Bool:
		return "b"
	case reflect.Int32:
		return "i" + named(t)
	case reflect.Int, reflect.Int64:
		return "l" + named(t)
	case reflect.Float64:
		return "f"
	case reflect.Struct:
		if _, known := g.types[name(t)]; !known {
			g.types[name(t)] = t
			for _, f := range fields(t) {
				g.code(f.Type)
			}
		}
		return "@" + name(t)
	case reflect.Interface:
		return "x"
	}
	panic("no code for " + t.String())
}

func fields(t reflect.Type) (all []reflect.StructField) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && strings.HasPrefix(tag, ",") || f.Anonymous && tag == "" {
			all = append(all, fields(f.Type)...)
			continue
		}
		all = append(all, f)
	}
	return all
}

func main() {
	g := table{types: map[string]reflect.Type{}}
	roots := []string{}
	known := map[string][]string{}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		gv := gvk.GroupVersion().String()
		if gvk.Version != runtime.APIVersionInternal {
			known[gv] = append(known[gv], gvk.Kind)
		}
		if !served[gv] || internal[gvk.Kind] || strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") {
			continue
		}
		roots = append(roots, fmt.Sprintf("%s %s %s", gv, gvk.Kind, name(t)))
		g.code(t)
	}
	crd := reflect.TypeFor[apiextensions.CustomResourceDefinition]()
	g.code(crd)
	roots = append(roots, fmt.Sprintf("apiextensions.k8s.io/v1 CustomResourceDefinition %s", name(crd)))
	sort.Strings(roots)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, r := range roots {
		fmt.Fprintln(out, "=", r)
	}
	versions := []string{}
	for gv := range known {
		versions = append(versions, gv)
	}
	sort.Strings(versions)
	for _, gv := range versions {
		sort.Strings(known[gv])
		fmt.Fprintln(out, "?", gv, strings.Join(known[gv], " "))
	}
	names := []string{}
	for n := range g.types {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintln(out, n)
		for _, f := range fields(g.types[n]) {
			tag := strings.Split(f.Tag.Get("json"), ",")
			mark := "!"
			for _, o := range tag[1:] {
				if o == "omitempty" && mark != "~" {
					mark = ""
				}
				if o == "omitzero" {
					mark = "~"
				}
			}
			fmt.Fprintf(out, " %s %s%s\n", tag[0], g.code(f.Type), mark)
		}
	}
}
