// Package check validates the manifests of deploy/kubernetes without a cluster. It is a module of
// its own, so that the main module does not depend on Kubernetes.
package check

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// The types below are the part of Agones' resources that the manifests use, written from its
// published definitions (agones.dev/v1, autoscaling.agones.dev/v1). The pod template is that of
// Kubernetes.

type fleet struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Replicas   int32  `json:"replicas"`
		Scheduling string `json:"scheduling"`
		Strategy   struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				MaxSurge       intstr.IntOrString `json:"maxSurge"`
				MaxUnavailable intstr.IntOrString `json:"maxUnavailable"`
			} `json:"rollingUpdate"`
		} `json:"strategy"`
		Template struct {
			meta.ObjectMeta `json:"metadata"`
			Spec            gameServer `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type gameServer struct {
	Ports []struct {
		Name          string `json:"name"`
		PortPolicy    string `json:"portPolicy"`
		Container     string `json:"container"`
		ContainerPort int32  `json:"containerPort"`
		Protocol      string `json:"protocol"`
	} `json:"ports"`
	Health struct {
		InitialDelaySeconds int32 `json:"initialDelaySeconds"`
		PeriodSeconds       int32 `json:"periodSeconds"`
		FailureThreshold    int32 `json:"failureThreshold"`
	} `json:"health"`
	Template core.PodTemplateSpec `json:"template"`
}

type autoscaler struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		FleetName string `json:"fleetName"`
		Policy    struct {
			Type   string `json:"type"`
			Buffer struct {
				BufferSize  intstr.IntOrString `json:"bufferSize"`
				MinReplicas int32              `json:"minReplicas"`
				MaxReplicas int32              `json:"maxReplicas"`
			} `json:"buffer"`
		} `json:"policy"`
	} `json:"spec"`
}

// kinds are the permitted resources.
var kinds = map[string]func() any{
	"agones.dev/v1 Fleet":                       func() any { return new(fleet) },
	"autoscaling.agones.dev/v1 FleetAutoscaler": func() any { return new(autoscaler) },
	"apps/v1 Deployment":                        func() any { return new(apps.Deployment) },
	"v1 Service":                                func() any { return new(core.Service) },
}

// decode decodes a manifest strictly: it reports unknown and repeated fields, and wrong types.
func decode(document []byte) (any, error) {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	name := kind.APIVersion + " " + kind.Kind
	if kinds[name] == nil {
		return nil, fmt.Errorf("unknown resource %s", name)
	}
	v := kinds[name]()
	return v, yaml.UnmarshalStrict(document, v)
}

// pods returns the pod template of a resource, if it has one.
func pods(v any) *core.PodTemplateSpec {
	switch v := v.(type) {
	case *fleet:
		return &v.Spec.Template.Spec.Template
	case *apps.Deployment:
		return &v.Spec.Template
	}
	return nil
}

func TestManifests(t *testing.T) {
	files, err := filepath.Glob("../*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, document := range bytes.Split(text, []byte("\n---\n")) {
			v, err := decode(document)
			if err != nil {
				t.Errorf("%s, document %d: %v", file, i+1, err)
				continue
			}
			if p := pods(v); p != nil {
				checkPods(t, file, &p.Spec)
			}
			switch v := v.(type) {
			case *fleet:
				checkFleet(t, v)
			case *apps.Deployment:
				if !reflect.DeepEqual(v.Spec.Selector.MatchLabels, v.Spec.Template.Labels) {
					t.Errorf("%s: the selector does not match the template", file)
				}
			}
		}
	}
}

// checkPods checks what the decoder cannot: names that refer to others, and that nothing runs as
// root or writes its root file system.
func checkPods(t *testing.T, file string, spec *core.PodSpec) {
	t.Helper()
	if s := spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
		t.Errorf("%s: pods may run as root", file)
	}
	volumes := map[string]bool{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range spec.Containers {
		if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
			t.Errorf("%s: container %s is not restricted", file, c.Name)
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: no volume %s", file, m.Name)
			}
		}
		ports := map[string]bool{}
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		for _, p := range []*core.Probe{c.LivenessProbe, c.ReadinessProbe} {
			if p != nil && !ports[p.HTTPGet.Port.StrVal] {
				t.Errorf("%s: no port %s", file, p.HTTPGet.Port.StrVal)
			}
		}
	}
}

func checkFleet(t *testing.T, f *fleet) {
	t.Helper()
	g := &f.Spec.Template.Spec
	containers := map[string]bool{}
	for _, c := range g.Template.Spec.Containers {
		containers[c.Name] = true
	}
	for _, p := range g.Ports {
		if p.Protocol != "UDP" || p.PortPolicy != "Dynamic" || !containers[p.Container] || p.ContainerPort == 0 {
			t.Errorf("port %+v", p)
		}
	}
	if f.Spec.Scheduling != "Packed" && f.Spec.Scheduling != "Distributed" || f.Spec.Strategy.Type != "RollingUpdate" && f.Spec.Strategy.Type != "Recreate" {
		t.Errorf("scheduling %q, strategy %q", f.Spec.Scheduling, f.Spec.Strategy.Type)
	}
}

// TestMistakes checks that mistakes are found.
func TestMistakes(t *testing.T) {
	for mistake, document := range map[string]string{
		"unknown field":    "apiVersion: v1\nkind: Service\nspec: {selectors: {a: b}}",
		"wrong type":       "apiVersion: v1\nkind: Service\nspec: {ports: [{port: x}]}",
		"unknown kind":     "apiVersion: v1\nkind: Servce",
		"unknown of a pod": "apiVersion: agones.dev/v1\nkind: Fleet\nspec: {template: {spec: {template: {spec: {container: []}}}}}",
		"repeated field":   "apiVersion: v1\nkind: Service\nkind: Service",
	} {
		if _, err := decode([]byte(document)); err == nil {
			t.Errorf("%s: no error", mistake)
		}
	}
}

var definitions = flag.String("crds", "", "file with Agones' published definitions (install.yaml), to validate the manifests with their schemas; empty: none")

// openAPI is the part of an OpenAPI schema that is checked.
type openAPI struct {
	Type       string             `json:"type"`
	Properties map[string]openAPI `json:"properties"`
	Additional any                `json:"additionalProperties"`
	Items      *openAPI           `json:"items"`
	Enum       []any              `json:"enum"`
	Open       bool               `json:"x-kubernetes-preserve-unknown-fields"`
	Either     bool               `json:"x-kubernetes-int-or-string"`
}

type definition struct {
	Kind string `json:"kind"`
	Spec struct {
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Schema struct {
				OpenAPI openAPI `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// TestDefinitions validates the manifests of Agones' resources with the published schemas.
func TestDefinitions(t *testing.T) {
	if *definitions == "" {
		t.Skip("it needs the published definitions: -crds FILE")
	}
	text, err := os.ReadFile(*definitions)
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]openAPI{}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var d definition
		if yaml.Unmarshal(document, &d) == nil && d.Kind == "CustomResourceDefinition" {
			schemas[d.Spec.Names.Kind] = d.Spec.Versions[0].Schema.OpenAPI
		}
	}
	manifests, err := os.ReadFile("../fleet.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range bytes.Split(manifests, []byte("\n---\n")) {
		var v map[string]any
		if err := yaml.Unmarshal(document, &v); err != nil {
			t.Fatal(err)
		}
		kind := v["kind"].(string)
		s, ok := schemas[kind]
		if !ok {
			t.Errorf("no definition of %s among %d", kind, len(schemas))
		}
		s.validate(t, kind, v)
	}
}

func (s openAPI) validate(t *testing.T, at string, v any) {
	t.Helper()
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		t.Errorf("%s: %v is none of %v", at, v, s.Enum)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			property, ok := s.Properties[name]
			open := s.Open || s.Additional != nil || len(s.Properties) == 0 || name == "apiVersion" || name == "kind" || name == "metadata"
			if !ok && !open {
				t.Errorf("%s.%s is not in the definition", at, name)
			}
			property.validate(t, at+"."+name, field)
		}
	case []any:
		for _, item := range v {
			if s.Items != nil {
				s.Items.validate(t, at+"[]", item)
			}
		}
	default:
		got := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "integer"}[reflect.TypeOf(v).Kind()]
		if s.Type != "" && got != s.Type && !s.Either && (s.Type != "number" || got != "integer") {
			t.Errorf("%s: %v is no %s", at, v, s.Type)
		}
	}
}
