// A candidate of client-go's leader election, for tests that let it compete with ours.
//
//	candidate LEASE IDENTITY
//
// It stands for election on a Lease in namespace default, and runs some work while it leads. Of that it writes "begin
// IDENTITY PID" into the file $JOURNAL, and "end IDENTITY" when TERM has ended it; only then does it give the lease back.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	lease, identity := os.Args[1], os.Args[2]
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	config.ContentType = "application/json" // Which every server understands, also one in memory.
	journal, err := os.OpenFile(os.Getenv("JOURNAL"), os.O_APPEND|os.O_WRONLY, 0)
	must(err)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	ctx, release := context.WithCancel(context.Background())
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: lease},
			Client:     kubernetes.NewForConfigOrDie(config).CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   4 * time.Second,
		RenewDeadline:   3 * time.Second,
		RetryPeriod:     500 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				runtime.LockOSThread() // With the thread that started it, the work dies.
				work := exec.Command("sleep", "infinity")
				work.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
				must(work.Start())
				fmt.Fprintf(journal, "begin %s %d\n", identity, work.Process.Pid)
				<-asked
				must(work.Process.Kill())
				_ = work.Wait() // It was killed.
				fmt.Fprintf(journal, "end %s\n", identity)
				release()
			},
			OnStoppedLeading: func() {},
		},
	})
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
