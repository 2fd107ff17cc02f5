// Command policy resolves every case of a file with the library that shipped policies are resolved
// with, over objects held by fake clients, and writes down the results.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/stolostron/go-template-utils/v7/pkg/templates"
	"gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

type file struct {
	Kinds   []kind           `yaml:"kinds" json:"kinds"`
	Objects []map[string]any `yaml:"objects" json:"objects"`
	Cases   []policyCase     `yaml:"cases" json:"cases"`
}

type kind struct {
	APIVersion string `yaml:"apiVersion" json:"apiVersion"`
	Kind       string `yaml:"kind" json:"kind"`
	Plural     string `yaml:"plural" json:"plural"`
	Namespaced bool   `yaml:"namespaced" json:"namespaced"`
}

type policyCase struct {
	// One of these two.
	Object map[string]any `yaml:"object" json:"object,omitempty"`
	YAML   string         `yaml:"yaml" json:"yaml,omitempty"`

	Context   map[string]any `yaml:"context" json:"context,omitempty"`
	Hub       bool           `yaml:"hub" json:"hub,omitempty"`
	Namespace string         `yaml:"namespace" json:"namespace,omitempty"`
	Allow     []string       `yaml:"allow" json:"allow,omitempty"`
	Deny      []string       `yaml:"deny" json:"deny,omitempty"`
	Indent    uint32         `yaml:"indent" json:"indent,omitempty"`
	Skip      bool           `yaml:"skip" json:"skip,omitempty"`
	// "encrypt" or "decrypt", with keys and vector as text.
	Encryption string `yaml:"encryption" json:"encryption,omitempty"`
	Key        string `yaml:"key" json:"key,omitempty"`
	Previous   string `yaml:"previous" json:"previous,omitempty"`
	IV         string `yaml:"iv" json:"iv,omitempty"`

	// Why our answer is another one, and what it is.
	Differs string `yaml:"differs" json:"differs,omitempty"`
	Ours    string `yaml:"ours" json:"ours,omitempty"`

	Result    json.RawMessage `yaml:"-" json:"result,omitempty"`
	Error     string          `yaml:"-" json:"error,omitempty"`
	Sensitive bool            `yaml:"-" json:"sensitive,omitempty"`
	Skipped   bool            `yaml:"-" json:"skipped,omitempty"`
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	fail(err)
	var f file
	fail(yaml.Unmarshal(text, &f))
	for i := range f.Cases {
		run(&f, &f.Cases[i])
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	fail(encoder.Encode(f))
	fail(os.WriteFile(os.Args[2], out.Bytes(), 0o644))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func clients(f *file) (*dynamicfake.FakeDynamicClient, *fakediscovery.FakeDiscovery) {
	lists := map[schema.GroupVersionResource]string{}
	groups := map[string]*metav1.APIResourceList{}
	for _, k := range f.Kinds {
		gv, err := schema.ParseGroupVersion(k.APIVersion)
		fail(err)
		lists[gv.WithResource(k.Plural)] = k.Kind + "List"
		if groups[k.APIVersion] == nil {
			groups[k.APIVersion] = &metav1.APIResourceList{GroupVersion: k.APIVersion}
		}
		groups[k.APIVersion].APIResources = append(groups[k.APIVersion].APIResources, metav1.APIResource{
			Name: k.Plural, Kind: k.Kind, Namespaced: k.Namespaced,
			Verbs: metav1.Verbs{"get", "list", "watch"},
		})
	}
	var objects []runtime.Object
	for _, object := range f.Objects {
		objects = append(objects, &unstructured.Unstructured{Object: kubernetes(object).(map[string]any)})
	}
	discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	for _, list := range groups {
		discovery.Resources = append(discovery.Resources, list)
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...), discovery
}

func run(f *file, c *policyCase) {
	dynamic, discovery := clients(f)
	config := templates.Config{AdditionalIndentation: c.Indent}
	if c.Hub {
		config.StartDelim, config.StopDelim = "{{hub", "hub}}"
	}
	resolver, err := templates.NewResolverWithClients(dynamic, discovery, config)
	fail(err)
	options := &templates.ResolveOptions{LookupNamespace: c.Namespace, DenylistFunctions: c.Deny}
	for _, allowed := range c.Allow {
		parts := strings.Split(allowed, "/")
		options.ClusterScopedAllowList = append(options.ClusterScopedAllowList,
			templates.ClusterScopedObjectIdentifier{Group: parts[0], Kind: parts[1], Name: parts[2]})
	}
	if c.Encryption != "" {
		options.EncryptionConfig = templates.EncryptionConfig{
			AESKey:               []byte(c.Key),
			InitializationVector: []byte(c.IV),
			EncryptionEnabled:    c.Encryption == "encrypt",
			DecryptionEnabled:    c.Encryption == "decrypt",
		}
		if c.Previous != "" {
			options.AESKeyFallback = []byte(c.Previous)
		}
	}
	if c.Skip {
		options.CustomFunctions = map[string]any{"skipObject": skipObject(&c.Skipped)}
	}
	source := []byte(c.YAML)
	if c.Object != nil {
		source, err = json.Marshal(c.Object)
		fail(err)
	} else {
		options.InputIsYAML = true
	}
	var context any
	if c.Context != nil {
		context = structure(c.Context)
	}
	result, err := resolver.ResolveTemplate(source, context, options)
	if err != nil {
		c.Error = err.Error()
		return
	}
	c.Result, c.Sensitive = result.ResolvedJSON, result.HasSensitiveData
}

// skipObject behaves as the ConfigurationPolicy controller documents its function.
func skipObject(skipped *bool) func(...any) (string, error) {
	return func(arguments ...any) (string, error) {
		if len(arguments) > 1 {
			return "", fmt.Errorf("expected one optional boolean argument but received %d arguments", len(arguments))
		}
		if len(arguments) == 0 || *skipped {
			*skipped = true
			return "", nil
		}
		skip, ok := arguments[0].(bool)
		if !ok {
			return "", fmt.Errorf("expected boolean but received '%v'", arguments[0])
		}
		*skipped = skip
		return "", nil
	}
}

func kubernetes(value any) any {
	switch value := value.(type) {
	case int:
		return int64(value)
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = kubernetes(value[i])
		}
		return list
	case map[string]any:
		entries := make(map[string]any, len(value))
		for key := range value {
			entries[key] = kubernetes(value[key])
		}
		return entries
	}
	return value
}

func structure(data map[string]any) any {
	names := make([]string, 0, len(data))
	for name := range data {
		names = append(names, name)
	}
	sort.Strings(names)
	fields := make([]reflect.StructField, 0, len(names))
	values := make([]reflect.Value, 0, len(names))
	for _, name := range names {
		value := kubernetes(data[name])
		if inner, ok := value.(map[string]any); ok && strings.HasSuffix(name, "Labels") {
			labels := map[string]string{}
			for key, label := range inner {
				labels[key] = label.(string)
			}
			value = labels
		}
		fields = append(fields, reflect.StructField{Name: name, Type: reflect.TypeOf(value)})
		values = append(values, reflect.ValueOf(value))
	}
	made := reflect.New(reflect.StructOf(fields)).Elem()
	for i := range values {
		made.Field(i).Set(values[i])
	}
	return made.Interface()
}
