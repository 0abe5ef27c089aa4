package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
)

// Release is what is known of an installed release.
type Release struct {
	// Name of the release, and the Namespace that it is recorded in.
	Name, Namespace string
	// Revision counts installation and upgrades from 1.
	Revision int
	// ChartVersion and AppVersion of the chart that was installed.
	ChartVersion, AppVersion string
	// Status as Helm calls it: deployed, failed, pending-install, pending-upgrade, uninstalling.
	Status string
	// Manifest is what was rendered, as a stream of YAML documents.
	Manifest string
	// Values that the user gave, without the chart's defaults.
	Values map[string]any
}

// Pending tells whether an earlier install or upgrade was interrupted before it was recorded as done or failed.
func (r *Release) Pending() bool { return release.Status(r.Status).IsPending() }

// Request is one release to be made.
type Request struct {
	// Name of the release.
	Name string
	// Chart to render.
	Chart *Chart
	// Values, merged over the chart's defaults.
	Values map[string]any
	// Timeout of Helm's hooks.
	Timeout time.Duration
	// Adopts says that the release takes over objects that are marked as its own before Install or Upgrade; Template does not ask whose they are.
	Adopts bool
}

// Client works on the releases of one namespace of one cluster.
type Client interface {
	// Get returns the release's newest revision, nil if there is none.
	Get(ctx context.Context, name string) (*Release, error)
	// Install makes the release and its namespace.
	Install(ctx context.Context, request Request) (*Release, error)
	// Upgrade replaces the release. Values of earlier revisions are not kept: the request says all.
	Upgrade(ctx context.Context, request Request) (*Release, error)
	// Uninstall removes the release and what it rendered, except what is annotated to be kept.
	Uninstall(ctx context.Context, name string, timeout time.Duration) error
	// Template renders the release as Install or Upgrade would, against the live cluster, and changes nothing.
	Template(ctx context.Context, request Request) (string, error)
}

type client struct {
	configuration *action.Configuration
	namespace     string
}

// New returns a client for the releases of a namespace. log gets Helm's own debug lines; nil drops them.
func New(getter genericclioptions.RESTClientGetter, namespace string, log func(format string, args ...any)) (Client, error) {
	if log == nil {
		log = func(string, ...any) {}
	}
	configuration := new(action.Configuration)
	err := configuration.Init(&namespaced{RESTClientGetter: getter, namespace: namespace}, namespace, "secret", log)
	if err != nil {
		return nil, fmt.Errorf("preparing Helm for namespace %s: %w", namespace, err)
	}
	return &client{configuration: configuration, namespace: namespace}, nil
}

// namespaced makes Helm put objects without a namespace into the release's, not into the kubeconfig's.
type namespaced struct {
	genericclioptions.RESTClientGetter
	namespace string
}

// ToRawKubeConfigLoader implements RESTClientGetter.
func (n *namespaced) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return &fixedNamespace{kubeconfig: n.RESTClientGetter.ToRawKubeConfigLoader(), namespace: n.namespace}
}

// kubeconfig has a name of its own, because ClientConfig is also one of its methods.
type kubeconfig = clientcmd.ClientConfig

type fixedNamespace struct {
	kubeconfig
	namespace string
}

// Namespace implements ClientConfig.
func (f *fixedNamespace) Namespace() (namespace string, overridden bool, err error) {
	return f.namespace, true, nil
}

// Get implements Client.
func (c *client) Get(ctx context.Context, name string) (*Release, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found, err := action.NewGet(c.configuration).Run(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Helm release %s/%s: %w", c.namespace, name, err)
	}
	return describe(found), nil
}

// Install implements Client.
func (c *client) Install(ctx context.Context, request Request) (*Release, error) {
	install := action.NewInstall(c.configuration)
	install.ReleaseName, install.Namespace, install.CreateNamespace = request.Name, c.namespace, true
	install.Timeout = request.Timeout
	made, err := install.RunWithContext(ctx, request.Chart.loaded, request.Values)
	if err != nil {
		return nil, fmt.Errorf("installing Helm release %s/%s: %w", c.namespace, request.Name, err)
	}
	return describe(made), nil
}

// Upgrade implements Client.
func (c *client) Upgrade(ctx context.Context, request Request) (*Release, error) {
	if err := c.unlock(request.Name); err != nil {
		return nil, err
	}
	upgrade := action.NewUpgrade(c.configuration)
	upgrade.Namespace, upgrade.ResetValues, upgrade.CleanupOnFail = c.namespace, true, true
	upgrade.Timeout, upgrade.MaxHistory = request.Timeout, 5
	made, err := upgrade.RunWithContext(ctx, request.Name, request.Chart.loaded, request.Values)
	if err != nil {
		return nil, fmt.Errorf("upgrading Helm release %s/%s: %w", c.namespace, request.Name, err)
	}
	return describe(made), nil
}

// unlock marks a revision that was interrupted as failed: Helm would refuse any further upgrade.
func (c *client) unlock(name string) error {
	last, err := c.configuration.Releases.Last(name)
	if err != nil || !last.Info.Status.IsPending() {
		return nil
	}
	last.SetStatus(release.StatusFailed, "interrupted")
	if err := c.configuration.Releases.Update(last); err != nil {
		return fmt.Errorf("closing the interrupted revision %d of Helm release %s/%s: %w", last.Version, c.namespace, name, err)
	}
	return nil
}

// Uninstall implements Client.
func (c *client) Uninstall(ctx context.Context, name string, timeout time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	uninstall := action.NewUninstall(c.configuration)
	uninstall.IgnoreNotFound, uninstall.Timeout = true, timeout
	if _, err := uninstall.Run(name); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return fmt.Errorf("uninstalling Helm release %s/%s: %w", c.namespace, name, err)
	}
	return nil
}

// Template implements Client.
func (c *client) Template(ctx context.Context, request Request) (string, error) {
	install := action.NewInstall(c.configuration)
	install.ReleaseName, install.Namespace = request.Name, c.namespace
	install.DryRun, install.DryRunOption, install.Replace = true, "server", true
	install.TakeOwnership = request.Adopts
	rendered, err := install.RunWithContext(ctx, request.Chart.loaded, request.Values)
	if err != nil {
		return "", fmt.Errorf("rendering Helm release %s/%s: %w", c.namespace, request.Name, err)
	}
	return rendered.Manifest, nil
}

func describe(r *release.Release) *Release {
	described := &Release{Name: r.Name, Namespace: r.Namespace, Revision: r.Version, Manifest: r.Manifest, Values: r.Config}
	if r.Info != nil {
		described.Status = string(r.Info.Status)
	}
	if r.Chart != nil && r.Chart.Metadata != nil {
		described.ChartVersion, described.AppVersion = r.Chart.Metadata.Version, r.Chart.Metadata.AppVersion
	}
	return described
}
