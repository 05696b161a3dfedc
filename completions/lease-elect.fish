complete -c lease-elect -l lease-duration -d 'Time until another process leads after a crash' -r
complete -c lease-elect -l missed-renewals -d 'Number of renewals in a row that may fail before leadership is lost' -r
complete -c lease-elect -l grace -d 'Time between TERM and KILL if leadership is lost' -r
complete -c lease-elect -l holder -d 'Identity of this process, unique in the election [default: HOST_PID_RANDOM]' -r
complete -c lease-elect -l status-address -d 'Serve /healthz, /readyz, /readyz?leader and /metrics on IP:PORT or :PORT' -r
complete -c lease-elect -l kubeconfig -d 'Kubeconfig file to use, instead of $KUBECONFIG or ~/.kube/config' -r -F
complete -c lease-elect -l context -d 'Kubeconfig context to use, instead of the current context' -r
complete -c lease-elect -l cluster -d 'Kubeconfig cluster to use, instead of the one of the context' -r
complete -c lease-elect -l user -d 'Kubeconfig user to use, instead of the one of the context' -r
complete -c lease-elect -s n -l namespace -d 'Namespace to use, instead of the one of the context or, in a pod, of the pod' -r
complete -c lease-elect -s s -l server -d 'Address and port of the API server' -r
complete -c lease-elect -l as -d 'User to impersonate: a regular user or system:serviceaccount:NAMESPACE:NAME' -r
complete -c lease-elect -l as-group -d 'Group to impersonate; repeat the flag for multiple groups' -r
complete -c lease-elect -l as-uid -d 'UID to impersonate' -r
complete -c lease-elect -l as-user-extra -d 'Extra attribute of the impersonated user; repeat the flag for multiple values' -r
complete -c lease-elect -l certificate-authority -d 'File with the CA certificates to check the API server\'s certificate with' -r -F
complete -c lease-elect -l client-certificate -d 'File with the client certificate to authenticate with' -r -F
complete -c lease-elect -l client-key -d 'File with the private key of the client certificate' -r -F
complete -c lease-elect -l insecure-skip-tls-verify -d 'Do not check the API server\'s certificate. This makes the connection insecure' -r -f -a "true\t''
True\t''
TRUE\t''
t\t''
T\t''
1\t''
false\t''
False\t''
FALSE\t''
f\t''
F\t''
0\t''"
complete -c lease-elect -l tls-server-name -d 'Server name to check the API server\'s certificate with, instead of its host name' -r
complete -c lease-elect -l request-timeout -d 'Time limit of a single request (e.g. 10, 10s, 1m); 0 means no limit' -r
complete -c lease-elect -l disable-compression -d 'Do not let the API server compress its responses' -r -f -a "true\t''
True\t''
TRUE\t''
t\t''
T\t''
1\t''
false\t''
False\t''
FALSE\t''
f\t''
F\t''
0\t''"
complete -c lease-elect -s v -l v -d 'Log level for requests: 6 (URL, status, time), 7 (headers), 8 (bodies)' -r
complete -c lease-elect -l token -d 'Bearer token to authenticate with' -r
complete -c lease-elect -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease-elect -s V -l version -d 'Print version'
