complete -c lease-elect -l lease-duration -d 'For how long each renewal holds: how soon another leads after a crash' -r
complete -c lease-elect -l missed-renewals -d 'How many renewals in a row may fail before the lead is given up' -r
complete -c lease-elect -l grace -d 'How long DAEMON and what it started have between TERM and KILL' -r
complete -c lease-elect -l holder -d 'Identity to lead with, instead of HOST_PROCESS_RANDOM: no two processes may have the same' -r
complete -c lease-elect -l status-address -d 'Serve /healthz, /readyz, /readyz?leader and /metrics there, such as 127.0.0.1:8080 or :8080' -r
complete -c lease-elect -l kubeconfig -d 'Kubeconfig file to use, instead of the files named in KUBECONFIG or ~/.kube/config' -r -F
complete -c lease-elect -l context -d 'Kubeconfig context to use, instead of the current one' -r
complete -c lease-elect -l cluster -d 'Kubeconfig cluster to talk to, instead of the context\'s' -r
complete -c lease-elect -l user -d 'Kubeconfig user to be, instead of the context\'s' -r
complete -c lease-elect -s n -l namespace -d 'Namespace to work in, instead of the context\'s or, in a cluster, the pod\'s own' -r
complete -c lease-elect -s s -l server -d 'Address and port of the API server' -r
complete -c lease-elect -l as -d 'User to act as: an ordinary user, or a service account (system:serviceaccount:NAMESPACE:NAME)' -r
complete -c lease-elect -l as-group -d 'Group to act as a member of; repeat it for several' -r
complete -c lease-elect -l as-uid -d 'UID to act as' -r
complete -c lease-elect -l as-user-extra -d 'Extra attribute of the user to act as; repeat it for several values or keys' -r
complete -c lease-elect -l certificate-authority -d 'File with the certificates of the authorities that may vouch for the API server' -r -F
complete -c lease-elect -l client-certificate -d 'File with the client certificate to authenticate with' -r -F
complete -c lease-elect -l client-key -d 'File with the key of the client certificate' -r -F
complete -c lease-elect -l insecure-skip-tls-verify -d 'Do not check the API server\'s certificate: anybody in between can then read and change everything' -r -f -a "true\t''
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
complete -c lease-elect -l tls-server-name -d 'Name that the API server\'s certificate must carry, where it is not the one in its address' -r
complete -c lease-elect -l request-timeout -d 'Longest time that a single request may take, such as 10s, 1m or 10 (seconds); 0 is without limit' -r
complete -c lease-elect -l disable-compression -d 'Do not ask the API server to compress its answers' -r -f -a "true\t''
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
complete -c lease-elect -s v -l v -d 'How much to tell about requests: 6 their URL, status and time, 7 headers too, 8 bodies too' -r
complete -c lease-elect -l token -d 'Bearer token to authenticate with' -r
complete -c lease-elect -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease-elect -s V -l version -d 'Print version'
