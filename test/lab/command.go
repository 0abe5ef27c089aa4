package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/cluster"
	"liqo.io/liqo/test/lab/host"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/state"
	"liqo.io/liqo/test/lab/step"
)

// command returns the command tree.
func command() *cobra.Command {
	root := &cobra.Command{
		Use: "lab", Short: "Starts and stops real Kubernetes clusters on this machine",
		SilenceUsage: true, SilenceErrors: true,
	}
	name := root.PersistentFlags().String("name", "demo", "name of the lab")
	root.AddCommand(upCommand(name), downCommand(name), statusCommand(name), kubeconfigCommand(name), loadCommand(name), shellCommand(name), prepareCommand(), buildCommand())
	return root
}

func upCommand(name *string) *cobra.Command {
	var file string
	var nodes int
	c := &cobra.Command{
		Use: "up", Args: cobra.NoArgs, Short: "Start the lab, or repair it; does nothing when it is healthy",
		Example: "  lab up\n  lab up --nodes 2\n  lab up -f lab.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			declared := spec.Demo(nodes)
			if file != "" {
				var err error
				if declared, err = spec.Load(file); err != nil {
					return err
				}
			}
			if file == "" || cmd.Flags().Changed("name") {
				declared.Name = *name
			}
			begin := time.Now()
			lab, err := cluster.Up(cmd.Context(), declared, progress(cmd))
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Lab %s is ready (%s).\n", declared.Name, time.Since(begin).Round(100*time.Millisecond))
			for _, c := range lab.Spec().Clusters {
				fmt.Fprintln(cmd.OutOrStdout(), lab.Kubeconfig(c.Name))
			}
			return nil
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "YAML file that declares the lab")
	c.Flags().IntVar(&nodes, "nodes", 1, "real nodes per cluster, when no file is given")
	return c
}

func prepareCommand() *cobra.Command {
	return &cobra.Command{
		Use: "prepare [PROGRAM...]", Short: "Install what real nodes need on this machine, or just these programs of it",
		Example: "  lab prepare\n  lab prepare nft",
		RunE: func(cmd *cobra.Command, programs []string) error {
			if len(programs) == 0 {
				return host.This().Prepare(cmd.Context(), progress(cmd))
			}
			wanted, err := host.Programs(programs...)
			if err != nil {
				return err
			}
			return host.This().Install(cmd.Context(), progress(cmd), wanted...)
		},
	}
}

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use: "build [PROGRAM...]", Short: "Build the programs of labs into the cache, or just these; what is there is not built again",
		Example: "  lab build\n  lab build kwok",
		RunE: func(cmd *cobra.Command, programs []string) error {
			if len(programs) == 0 {
				programs = binary.Usual()
			}
			_, err := binary.Ensure(cmd.Context(), programs, progress(cmd))
			return err
		},
	}
}

func downCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use: "down", Args: cobra.NoArgs, Short: "Stop the lab and remove everything of it",
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab, err := cluster.Open(*name)
			if errors.Is(err, cluster.ErrUnknown) {
				fmt.Fprintf(cmd.ErrOrStderr(), "There is no lab %s, nothing to do.\n", *name)
				return nil
			}
			if err != nil {
				return err
			}
			return lab.Down(cmd.Context(), progress(cmd))
		},
	}
}

func statusCommand(name *string) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "status", Args: cobra.NoArgs, Short: "Show the labs of this machine, or the one named with --name",
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := []string{*name}
			if !cmd.Flags().Changed("name") {
				var err error
				if names, err = state.Names(); err != nil {
					return err
				}
			}
			list := []cluster.Status{}
			for _, n := range names {
				lab, err := cluster.Open(n)
				if err != nil {
					return err
				}
				list = append(list, lab.Status(cmd.Context()))
			}
			return printStatus(cmd.OutOrStdout(), output, list)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}

func printStatus(out io.Writer, format string, list []cluster.Status) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(list)
	case "table":
	default:
		return fmt.Errorf("output format %q is unknown: use table or json", format)
	}
	w := tabwriter.NewWriter(out, 0, 4, 3, ' ', 0)
	fmt.Fprintln(w, "LAB\tCLUSTER\tSTATUS\tREAL\tSIMULATED\tMEMORY\tKUBECONFIG")
	for _, s := range list {
		for _, c := range s.Clusters {
			status, memory := "Ready", "-"
			if c.Waiting != "" {
				status = "waiting for " + c.Waiting
			}
			if len(c.Dead) > 0 {
				status = "dead: " + strings.Join(c.Dead, ", ")
			}
			if c.MemoryMB > 0 {
				memory = fmt.Sprintf("%d MB", c.MemoryMB)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.Lab, c.Name, status, c.Real, c.Simulated, memory, c.Kubeconfig)
		}
	}
	return w.Flush()
}

func kubeconfigCommand(name *string) *cobra.Command {
	var content bool
	c := &cobra.Command{
		Use: "kubeconfig CLUSTER", Args: cobra.ExactArgs(1), Short: "Print the path of a cluster's kubeconfig",
		Example: "  export KUBECONFIG=$(lab kubeconfig rome)",
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := cluster.Open(*name)
			if err != nil {
				return err
			}
			if _, err := lab.Config(args[0]); err != nil {
				return err
			}
			path := lab.Kubeconfig(args[0])
			if !content {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), path)
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("reading the kubeconfig: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
	c.Flags().BoolVar(&content, "content", false, "print the file's content instead of its path")
	return c
}

func loadCommand(name *string) *cobra.Command {
	var clusters []string
	c := &cobra.Command{
		Use: "load ARCHIVE...", Args: cobra.MinimumNArgs(1), Short: "Load docker-archive files into every real node",
		Example: "  lab load bin/images/*.tar\n  lab load --cluster rome image.tar",
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := cluster.Open(*name)
			if err != nil {
				return err
			}
			for i := range args {
				if args[i], err = filepath.Abs(args[i]); err != nil {
					return fmt.Errorf("finding the archive: %w", err)
				}
			}
			return step.Run(progress(cmd), "loading images", func() error { return lab.Load(cmd.Context(), args, clusters...) })
		},
	}
	c.Flags().StringSliceVar(&clusters, "cluster", nil, "clusters to load into (default: all)")
	return c
}

func shellCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use: "shell CLUSTER[/NODE] [-- COMMAND...]", Args: cobra.MinimumNArgs(1),
		Short:   "Open a shell with kubectl for a cluster, or within the network of a node",
		Example: "  lab shell rome\n  lab shell rome -- kubectl get pods -A\n  lab shell rome/rome-1 -- ip route",
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := cluster.Open(*name)
			if err != nil {
				return err
			}
			clusterName, node, _ := strings.Cut(args[0], "/")
			if _, err := lab.Config(clusterName); err != nil {
				return err
			}
			programs, err := binary.Ensure(cmd.Context(), []string{binary.Kubectl}, progress(cmd))
			if err != nil {
				return err
			}
			argv := args[1:]
			if len(argv) == 0 {
				argv = []string{userShell()}
			}
			if node != "" {
				if argv, err = lab.Within(clusterName, node, argv); err != nil {
					return err
				}
			}
			path := filepath.Dir(programs[binary.Kubectl]) + ":" + os.Getenv("PATH")
			if err := os.Setenv("PATH", path); err != nil { // also decides what the command's own name means
				return fmt.Errorf("setting PATH: %w", err)
			}
			child := exec.CommandContext(cmd.Context(), argv[0], argv[1:]...)
			child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			child.Env = append(os.Environ(), "KUBECONFIG="+lab.Kubeconfig(clusterName))
			return child.Run()
		},
	}
}

func userShell() string {
	if shell := os.Getenv("SHELL"); shell != "" {
		return shell
	}
	return "/bin/sh"
}

func progress(cmd *cobra.Command) step.Observer {
	return step.NewLines(cmd.ErrOrStderr(), clock.RealClock{})
}
