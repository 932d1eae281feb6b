export { Gateway } from '../screens/gateway.tsx';
export { GatewayRequest } from '../screens/gateway-request.tsx';
