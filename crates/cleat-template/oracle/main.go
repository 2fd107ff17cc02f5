// Command oracle runs every template of a cases file through Go's text/template with Sprig and
// writes what came out, or the error, to an answers file. The answers are committed, so that the
// Rust tests need no Go.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"gopkg.in/yaml.v3"
)

type group struct {
	Name string `yaml:"name" json:"name"`
	// Shape is "map" (the default), "struct" or "nil": what dot is.
	Shape      string   `yaml:"shape" json:"shape,omitempty"`
	MissingKey string   `yaml:"missingkey" json:"missingkey,omitempty"`
	Left       string   `yaml:"left" json:"left,omitempty"`
	Right      string   `yaml:"right" json:"right,omitempty"`
	Data       any      `yaml:"data" json:"data"`
	Templates  []string `yaml:"templates" json:"-"`
	Answers    []answer `yaml:"-" json:"answers"`
}

type answer struct {
	Template string  `json:"template"`
	Output   *string `json:"output,omitempty"`
	Error    string  `json:"error,omitempty"`
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: oracle CASES.yaml ANSWERS.json"))
	}
	text, err := os.ReadFile(os.Args[1])
	fail(err)
	var groups []group
	fail(yaml.Unmarshal(text, &groups))
	for i := range groups {
		g := &groups[i]
		for _, text := range g.Templates {
			g.Answers = append(g.Answers, run(g, text))
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	fail(encoder.Encode(groups))
	fail(os.WriteFile(os.Args[2], out.Bytes(), 0o644))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The moment that the Rust test passes in as the present.
var now = time.Date(2026, time.March, 4, 5, 6, 7, 89_000_000, time.UTC)

func run(g *group, text string) (result answer) {
	result.Template = text
	functions := template.FuncMap(sprig.FuncMap())
	functions["now"] = func() time.Time { return now }
	tmpl := template.New("tmpl").Delims(g.Left, g.Right).Funcs(functions)
	if g.MissingKey != "" {
		tmpl = tmpl.Option("missingkey=" + g.MissingKey)
	}
	tmpl, err := tmpl.Parse(text)
	if err != nil {
		result.Error = err.Error()
		return
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, shaped(g)); err != nil {
		result.Error = err.Error()
		return
	}
	output := out.String()
	result.Output = &output
	return
}

func shaped(g *group) any {
	switch g.Shape {
	case "nil":
		return nil
	case "struct":
		return structure(g.Data.(map[string]any))
	}
	return kubernetes(g.Data)
}

// kubernetes copies a value, so that no template changes the data of the next, and gives whole
// numbers the type they have in objects of the API.
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

// structure makes a struct whose fields are strings, maps of strings, or maps of anything.
func structure(data map[string]any) any {
	names := make([]string, 0, len(data))
	for name := range data {
		names = append(names, name)
	}
	sort.Strings(names)
	fields := make([]reflect.StructField, 0, len(names))
	values := make([]reflect.Value, 0, len(names))
	for _, name := range names {
		var value any = kubernetes(data[name])
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
