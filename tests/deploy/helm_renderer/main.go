// Renders a chart as `helm template` does: Go's text/template, sprig, and the functions and objects that Helm adds.
//
// Reads {"chart": FOLDER, "cases": [{"release", "namespace", "values", "kubeVersion", "apiVersions"}]} from standard
// input; values are whole, merged with those of the chart by the caller. Writes [{"manifests": {TEMPLATE: TEXT}} or
// {"error": TEXT}] to standard output. The chart has no dependencies, so there are no subcharts, globals or hooks here.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/semver"
	"github.com/Masterminds/sprig"
	yaml "gopkg.in/yaml.v2"
)

type object = map[string]interface{}

type testCase struct {
	Release     string   `json:"release"`
	Namespace   string   `json:"namespace"`
	Values      object   `json:"values"`
	KubeVersion string   `json:"kubeVersion"`
	APIVersions []string `json:"apiVersions"`
}

type result struct {
	Manifests map[string]string `json:"manifests,omitempty"`
	Error     string            `json:"error,omitempty"`
}

func main() {
	var asked struct {
		Chart string     `json:"chart"`
		Cases []testCase `json:"cases"`
	}
	check(json.NewDecoder(os.Stdin).Decode(&asked))
	chart, err := load(asked.Chart)
	check(err)
	results := make([]result, len(asked.Cases))
	for i, c := range asked.Cases {
		manifests, err := chart.render(c)
		if err != nil {
			results[i].Error = err.Error()
		} else {
			results[i].Manifests = manifests
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(results))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type chart struct {
	metadata  object
	templates map[string]string
	files     files
}

func load(folder string) (*chart, error) {
	c := &chart{templates: map[string]string{}, files: files{}}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		switch {
		case relative == "Chart.yaml":
			c.metadata = fromYaml(string(data))
		case strings.HasPrefix(relative, "templates/"):
			c.templates[relative] = string(data)
		case relative != "values.yaml" && relative != "values.schema.json":
			c.files[relative] = data
		}
		return nil
	})
	if err == nil && c.metadata["name"] == nil {
		err = fmt.Errorf("%s holds no Chart.yaml with a name", folder)
	}
	return c, err
}

func (c *chart) render(asked testCase) (map[string]string, error) {
	name := c.metadata["name"].(string)
	root := template.New("gotpl").Option("missingkey=zero")
	root.Funcs(functions(root))
	for file, text := range c.templates {
		if _, err := root.New(name + "/" + file).Parse(text); err != nil {
			return nil, err
		}
	}
	// Chart.yaml as Helm gives it to templates: names begin with capitals.
	metadata := object{}
	for key, value := range c.metadata {
		metadata[strings.ToUpper(key[:1])+key[1:]] = value
	}
	version, err := semver.NewVersion(asked.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("kubeVersion %q: %w", asked.KubeVersion, err)
	}
	rendered := map[string]string{}
	for file := range c.templates {
		if strings.HasPrefix(path.Base(file), "_") {
			continue
		}
		dot := object{
			"Chart":  metadata,
			"Values": asked.Values,
			"Files":  c.files,
			"Release": object{
				"Name": asked.Release, "Namespace": asked.Namespace, "Service": "Helm",
				"IsInstall": true, "IsUpgrade": false, "Revision": 1,
			},
			"Capabilities": object{
				"KubeVersion": object{
					"Version": "v" + version.String(), "GitVersion": "v" + version.String(),
					"Major": fmt.Sprint(version.Major()), "Minor": fmt.Sprint(version.Minor()),
				},
				"APIVersions": apiVersions(asked.APIVersions),
			},
			"Template": object{"Name": name + "/" + file, "BasePath": name + "/templates"},
		}
		var out bytes.Buffer
		if err := root.ExecuteTemplate(&out, name+"/"+file, dot); err != nil {
			return nil, err
		}
		// Helm does the same: with missingkey=zero a value of an interface's type is shown so.
		rendered[file] = strings.ReplaceAll(out.String(), "<no value>", "")
	}
	return rendered, nil
}

type apiVersions []string

// Has says whether the cluster has a group and version, or one of its kinds.
func (a apiVersions) Has(version string) bool {
	for _, known := range a {
		if known == version {
			return true
		}
	}
	return false
}

type files map[string][]byte

func (f files) Get(name string) string      { return string(f[name]) }
func (f files) GetBytes(name string) []byte { return f[name] }

func (f files) Glob(pattern string) files {
	found := files{}
	for name, data := range f {
		if matched, err := path.Match(pattern, name); err == nil && matched {
			found[name] = data
		}
	}
	return found
}

func (f files) AsConfig() string {
	flat := map[string]string{}
	for name, data := range f {
		flat[path.Base(name)] = string(data)
	}
	return toYaml(flat)
}

func (f files) AsSecrets() string {
	flat := map[string]string{}
	for name, data := range f {
		flat[path.Base(name)] = base64.StdEncoding.EncodeToString(data)
	}
	return toYaml(flat)
}

func functions(root *template.Template) template.FuncMap {
	all := sprig.TxtFuncMap()
	// Helm takes these away: a chart is the same wherever it is rendered.
	delete(all, "env")
	delete(all, "expandenv")
	depth := map[string]int{}
	all["include"] = func(name string, data interface{}) (string, error) {
		if depth[name] > 1000 {
			return "", fmt.Errorf("rendering template has a nested reference name: %s", name)
		}
		depth[name]++
		defer func() { depth[name]-- }()
		var out strings.Builder
		err := root.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	all["tpl"] = func(text string, data interface{}) (string, error) {
		clone, err := root.Clone()
		if err != nil {
			return "", err
		}
		clone.Funcs(functions(clone))
		parsed, err := clone.New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		var out strings.Builder
		err = parsed.Execute(&out, data)
		return strings.ReplaceAll(out.String(), "<no value>", ""), err
	}
	all["required"] = func(message string, value interface{}) (interface{}, error) {
		if text, isText := value.(string); value == nil || (isText && text == "") {
			return value, errors.New(message)
		}
		return value, nil
	}
	all["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	// There is no cluster to ask, as in `helm template`.
	all["lookup"] = func(string, string, string, string) (object, error) { return object{}, nil }
	all["toYaml"] = toYaml
	all["fromYaml"] = fromYaml
	all["fromYamlArray"] = func(text string) []interface{} {
		list, isList := decode(text).([]interface{})
		if !isList {
			return []interface{}{"the text is no YAML list"}
		}
		return list
	}
	all["toJson"] = func(value interface{}) string {
		data, err := json.Marshal(value)
		if err != nil {
			return ""
		}
		return string(data)
	}
	all["fromJson"] = func(text string) object {
		found := object{}
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			found["Error"] = err.Error()
		}
		return found
	}
	return all
}

// toYaml writes a value as sigs.k8s.io/yaml does: by way of JSON, with sorted keys.
func toYaml(value interface{}) string {
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	// JSON is YAML, and YAML's reader keeps integers as what they are.
	var plain interface{}
	if err := yaml.Unmarshal(data, &plain); err != nil {
		return ""
	}
	text, err := yaml.Marshal(plain)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

func fromYaml(text string) object {
	found, isObject := decode(text).(object)
	if !isObject {
		return object{"Error": "the text is no YAML object"}
	}
	return found
}

// decode reads YAML as Helm does: by way of JSON, so that every number is a float64.
func decode(text string) interface{} {
	var found interface{}
	if err := yaml.Unmarshal([]byte(text), &found); err != nil {
		return object{"Error": err.Error()}
	}
	data, err := json.Marshal(jsonable(found))
	if err != nil {
		return object{"Error": err.Error()}
	}
	var plain interface{}
	if err := json.Unmarshal(data, &plain); err != nil {
		return object{"Error": err.Error()}
	}
	if plain == nil {
		return object{}
	}
	return plain
}

func jsonable(value interface{}) interface{} {
	switch typed := value.(type) {
	case map[interface{}]interface{}:
		out := object{}
		for key, item := range typed {
			out[fmt.Sprint(key)] = jsonable(item)
		}
		return out
	case []interface{}:
		out := make([]interface{}, len(typed))
		for i, item := range typed {
			out[i] = jsonable(item)
		}
		return out
	}
	return value
}
